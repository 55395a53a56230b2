// Package veo plays the part of Google's Gemini API that makes videos with Veo.
//
// It refuses the parameters that only Vertex AI has: a seed, silence, a resize mode and a
// bucket. Videos are files of the account. Fetching one needs the account's key. The link
// redirects to another path of the same host. A file is available for two days.
package veo
