// Package mediainfo tells what a media file is from its own bytes: its type
// from the first bytes, and width, height and duration from its headers, or, of
// a sound, from what is there.
//
// A Probe looks at files while they stream by to somewhere else, and says of one
// that has gone by whether its headers are there at all. Inspect reads
// one only as far as it must, and says in words why a file is no good.
//
// Both hold a bounded part of a file at most, believe no size that a file
// states, and answer zero for what they cannot tell. The package imports imagefile,
// whose verdict on pictures is theirs, and nothing else of the project.
package mediainfo
