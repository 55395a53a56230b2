package sample

import (
	"encoding/binary"
	"io"
	"math"
	"unicode/utf8"
)

// FLAC makes silence of the length: 16 bits, one channel, at 24 kHz.
func FLAC(seconds float64) *io.SectionReader {
	const block, rate = 4096, 24000
	frames := max(1, int(math.Ceil(seconds*rate/block)))
	// STREAMINFO: sizes of blocks, of frames (unknown), then rate, channels, bits
	// and samples in one, and no checksum of the sound.
	file := append([]byte("fLaC\x00\x00\x00\x22"), 0x10, 0x00, 0x10, 0x00, 0, 0, 0, 0, 0, 0)
	file = binary.BigEndian.AppendUint64(file, uint64(rate)<<44|15<<36|uint64(frames*block))
	file = append(file, make([]byte, 16)...)
	file = append(file, "\x84\x00\x00\x0e\x06\x00\x00\x00sample\x00\x00\x00\x00"...) // a comment of nobody's, the last of the heads
	for i := range frames {
		head := []byte{0xff, 0xf8, 0xc7, 0x08} // blocks of 4096, 24 kHz, one channel, 16 bits
		head = utf8.AppendRune(head, rune(i))
		head = append(head, crc8(head))
		frame := append(head, 0, 0, 0) // one subframe, of a constant, which is 0
		file = binary.BigEndian.AppendUint16(append(file, frame...), crc16(frame))
	}
	return sectionOf(file)
}

func crc8(b []byte) (crc byte) {
	for _, v := range b {
		crc ^= v
		for range 8 {
			if crc&0x80 != 0 {
				crc = crc<<1 ^ 0x07
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

func crc16(b []byte) (crc uint16) {
	for _, v := range b {
		crc ^= uint16(v) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x8005
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}
