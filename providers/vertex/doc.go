// Package vertex is the adapter of Veo on Google's Vertex AI.
//
// A submission starts a long-running operation, which is asked for by POST. Its
// answer holds the videos themselves, as base64: a poll looks at the beginning
// of each and keeps none, and a video is fetched by asking again and reading up
// to it. The calls carry the access token of a service account, made with its
// key and good for an hour. Frames travel in the request as bytes.
//
// The vendor has no id of ours, stops no job of Veo's, and tells no progress.
//
// Facts: the API reference, and Google's own Go client. What a request may hold
// and the words of a refusal for its content are read at second hand.
package vertex
