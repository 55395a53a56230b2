// Package sunoapi plays sunoapi.org: songs, two of each request, the separation
// of a song into its tracks, and replaced sections. Everything is answered with
// HTTP 200 and a code. An address for callbacks is demanded.
package sunoapi
