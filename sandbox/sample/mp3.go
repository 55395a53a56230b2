package sample

import (
	"io"
	"math"
)

// A frame of MP3: MPEG 1, layer III, 44.1 kHz, 32 kbit/s, one channel. Its side
// information says that no sound follows, which is silence.
const (
	mp3FrameLen = 104
	mp3Samples  = 1152
	mp3Rate     = 44100
)

// MP3 makes silence of the length, in whole frames of 26 milliseconds. Memory
// does not depend on the length.
func MP3(seconds float64) *io.SectionReader {
	frames := max(1, int64(math.Round(seconds*mp3Rate/mp3Samples)))
	frame := make([]byte, mp3FrameLen)
	copy(frame, "\xff\xfb\x10\xc0")
	var s sections
	s.add(frames*mp3FrameLen, repeated(frame))
	return io.NewSectionReader(&s, 0, s.size)
}
