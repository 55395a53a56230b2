package sample

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
)

// tonePeriod is the number of samples after which the tone repeats.
const tonePeriod = 100

// PCM returns a tone of the given length: samples of 16 bits, lower byte first, one channel. Its
// memory does not depend on the length.
func PCM(seconds float64, rate int) *io.SectionReader {
	const loud = 8000 // of 32767
	tone := make([]byte, 0, 2*tonePeriod)
	for i := range tonePeriod {
		tone = binary.LittleEndian.AppendUint16(tone,
			uint16(int16(math.Round(loud*math.Sin(2*math.Pi*float64(i)/tonePeriod)))))
	}
	return io.NewSectionReader(repeated(tone), 0, 2*int64(math.Round(seconds*float64(rate))))
}

// Wave returns PCM in a WAV file.
func Wave(seconds float64, rate int) *io.SectionReader {
	data := PCM(seconds, rate)
	little := binary.LittleEndian
	head := append([]byte("RIFF"), little.AppendUint32(nil, uint32(36+data.Size()))...)
	head = append(head, "WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00"...) // PCM, one channel
	head = little.AppendUint32(head, uint32(rate))
	head = little.AppendUint32(head, uint32(2*rate))
	head = append(head, "\x02\x00\x10\x00data"...) // bytes and bits of a sample
	head = little.AppendUint32(head, uint32(data.Size()))
	var s sections
	s.addBytes(head)
	s.add(data.Size(), data)
	return io.NewSectionReader(&s, 0, s.size)
}

// WAV returns a tone in a WAV file at 44.1 kHz.
func WAV(seconds float64) *io.SectionReader { return Wave(seconds, 44100) }

func sectionOf(file []byte) *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(file), 0, int64(len(file)))
}
