// Package minimax plays both generations of MiniMax's video API. Errors of the first have HTTP
// 200, and its results are files that need a further call. The second has an envelope of its
// own.
//
// The header of a picture within a request is checked. Videos and sounds are links, which are
// not fetched.
package minimax
