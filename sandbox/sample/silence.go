package sample

import (
	_ "embed" // for the two files of silence
	"io"
)

//go:embed silence.opus
var opus []byte

//go:embed silence.flac
var flac []byte

// Opus returns a second of silence in an Ogg container, one channel.
func Opus() *io.SectionReader { return sectionOf(opus) }

// FLAC returns a second of silence: 16 bits, one channel, 24 kHz.
func FLAC() *io.SectionReader { return sectionOf(flac) }
