package sample

import (
	"encoding/binary"
	"io"
	"math"
)

// The tone: 441 Hz, so that its wave repeats after just 100 samples.
const (
	waveRate   = 44100
	wavePeriod = 100
	waveLoud   = 8000 // of 32767
)

// WAV makes a tone of the length: PCM of 16 bits, one channel. Memory does not
// depend on the length.
func WAV(seconds float64) *io.SectionReader {
	data := 2 * int64(math.Round(seconds*waveRate))
	head := append([]byte("RIFF"), le32(uint32(36+data))...)
	head = append(head, "WAVEfmt "...)
	head = append(head, le32(16)...)
	head = append(head, 1, 0, 1, 0) // PCM, one channel
	head = append(head, le32(waveRate, 2*waveRate)...)
	head = append(head, 2, 0, 16, 0) // bytes and bits of a sample
	head = append(append(head, "data"...), le32(uint32(data))...)

	tone := make([]byte, 0, 2*wavePeriod)
	for i := range wavePeriod {
		v := waveLoud * math.Sin(2*math.Pi*float64(i)/wavePeriod)
		tone = binary.LittleEndian.AppendUint16(tone, uint16(int16(math.Round(v))))
	}
	var s sections
	s.addBytes(head)
	s.add(data, repeated(tone))
	return io.NewSectionReader(&s, 0, s.size)
}

func le32(values ...uint32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}
