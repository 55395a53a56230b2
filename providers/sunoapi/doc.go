// Package sunoapi is the adapter of sunoapi.org: songs, the separation of a song
// into its tracks, and replaced sections.
//
// A song is named by the task that made it and by its own id, so follow-ups work
// on songs of the same account only. A job is found by the vendor's id.
//
// Each submission must name an address for callbacks. If there is none that the vendor
// can reach, it gets a name that can never be resolved, and jobs are polled. A job whose
// callback could not be delivered is as good as any other once its songs are there.
//
// The vendor answers with HTTP 200 and a code of its own, in which 429 is an
// empty purse, and 405, 430 and 455 ask for a later call.
//
// Facts: the vendor's API reference, in part at second hand; the lines say so.
package sunoapi
