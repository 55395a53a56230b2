// Package sunoapi plays sunoapi.org: songs, two of each request, the separation
// of a song into its tracks, and replaced sections. Everything is answered with
// HTTP 200 and a code. Addresses for callbacks are demanded and not called.
package sunoapi
