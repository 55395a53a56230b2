package sample

import (
	_ "embed" // two files
	"io"
)

//go:embed silence.opus
var opus []byte

//go:embed silence.flac
var flac []byte

// Opus is a second of silence in an Ogg container, one channel.
func Opus() *io.SectionReader { return sectionOf(opus) }

// FLAC is a second of silence: 16 bits, one channel, at 24 kHz.
func FLAC() *io.SectionReader { return sectionOf(flac) }
