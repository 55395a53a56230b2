// Package musicapi plays the Sonic API of MusicAPI.ai, as far as songs from a
// sample of another song: two of each request. Errors come with the HTTP status.
// A job that waits is not ready, and no answer about one carries its id.
package musicapi
