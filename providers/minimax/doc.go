// Package minimax is the adapter of MiniMax's video API.
//
// The vendor has two generations of it side by side, and each of our
// operations is one of them: video is /v1, of the Hailuo models, whose answers
// are HTTP 200 whatever has happened and whose finished jobs name a file that
// a further call gives a link for; video_v2 is /v2, of MiniMax-H3, with HTTP
// statuses, one list of contents and the link in the job itself.
//
// A job is found by the vendor's id only, and a second generation's for seven
// days. Only a queued job of the second one can be stopped.
//
// Facts: MiniMax's API reference. Where it is silent or read at second hand,
// the line says so.
package minimax
