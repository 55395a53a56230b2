// Package veo is the adapter of Veo on Google's Gemini API.
//
// It makes the same videos as Vertex AI and takes less: the sound is always on,
// and there is neither seed nor cropping. What it cannot say is refused, so that
// a request goes the other way. Videos are files of the account, kept for two
// days and fetched with its key; the download is led on, within Google's hosts,
// and the key goes to the channel's own host only.
//
// The vendor has no id of ours, stops no job of Veo's, and tells no progress.
//
// Facts: the API reference, and Google's own Go client, which refuses the fields
// that the surface lacks. Where downloads lead is read at second hand.
package veo
