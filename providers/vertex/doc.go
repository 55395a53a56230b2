// Package vertex is the adapter of Veo on Google's Vertex AI.
//
// A submission starts a long-running operation, which is polled by POST. The answer contains the
// videos themselves as base64. A poll stops reading when the last video begins, and keeps no video. To
// fetch a video, Open polls again and reads up to the end of that video. The calls carry the access
// token of a service account, which is made with the account's key and lives for an hour. The request
// contains the frames as bytes.
//
// The vendor does not know our ids, cannot stop a job of Veo, and reports no progress.
//
// Sources: the API reference, and Google's own Go client. The limits of a request and the texts of
// content refusals are known from secondary sources only.
package vertex
