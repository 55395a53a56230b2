// Package minimax plays MiniMax: the first generation of its video API, whose
// errors come with HTTP 200 and whose results are files to be looked up, and
// the second one with an envelope of its own.
//
// A video or a sound in the second generation's request is measured when it is
// in the request itself and its length can be read from its head: MP4 and
// QuickTime, WAV.
package minimax
