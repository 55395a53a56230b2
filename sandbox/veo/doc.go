// Package veo plays Google's Gemini API as far as it makes videos with Veo.
//
// It refuses what only Vertex AI has: a seed, silence, a way to resize, a bucket.
// Videos are files of the account, fetched with its key, whose link leads on to
// another path of the same host; they are there for two days.
package veo
