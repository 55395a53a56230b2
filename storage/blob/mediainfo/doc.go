// Package mediainfo tells what a media file is from its own bytes: its type
// from the first bytes, and width, height and duration from its headers while
// the file streams by.
//
// It holds a bounded part of a file at most, believes no size that a file
// states, and answers zero for what it cannot tell. It imports nothing of the
// project.
package mediainfo
