// Package sunoapi plays sunoapi.org: songs, two for each request, the separation of a song into
// its tracks, and replaced sections. Every answer has HTTP 200 and a code. Requests must name an
// address for callbacks.
package sunoapi
