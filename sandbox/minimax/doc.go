// Package minimax plays MiniMax: the first generation of its video API, whose
// errors come with HTTP 200 and whose results are files to be looked up, and
// the second one with an envelope of its own.
//
// A picture within a request is looked at. Videos and sounds are links.
package minimax
