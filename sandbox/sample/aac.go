package sample

import (
	"io"
	"math"
)

// AAC returns silence of the given length as ADTS frames of AAC-LC: 44.1 kHz, one channel, whole
// frames of 23 ms.
func AAC(seconds float64) *io.SectionReader {
	const rate, header = 44100, 7
	body := silence()
	size := header + len(body)
	frame := append([]byte{
		// MPEG-4, without a checksum, any bit rate
		0xff, 0xf1, 0x50, byte(0x40 | size>>11), byte(size >> 3), byte(size<<5 | 0x1f), 0xfc,
	}, body...)
	frames := max(1, int64(math.Round(seconds*rate/audioFrame)))
	return io.NewSectionReader(repeated(frame), 0, frames*int64(len(frame)))
}
