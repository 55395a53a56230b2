// Package veo is the adapter of Veo on Google's Gemini API.
//
// The API makes the same videos as Vertex AI, but supports less: the sound is always on, and there
// are neither seeds nor cropping. The adapter refuses other requests, so that they go to Vertex AI.
// The account stores the videos for two days, and a download needs its key. Google redirects a
// download between its hosts; the adapter sends the key to the channel's own host only.
//
// The vendor does not know our ids, cannot stop a job of Veo, and reports no progress.
//
// Sources: the API reference, and Google's own Go client, which refuses the fields that the API
// lacks. The redirects of downloads are known from secondary sources only.
package veo
