package sample

import (
	"encoding/binary"
	"io"
	"math"
	"strings"
)

// Opus makes silence of the length in an Ogg container, one channel, in whole
// packets of 20 milliseconds.
func Opus(seconds float64) *io.SectionReader {
	const packet, perPacket, perPage = "\xf8\xff\xfe", 960, 50
	packets := max(1, int(math.Round(seconds*48000/perPacket)))
	file := page(nil, 2, 0, 0, "OpusHead\x01\x01\x00\x00\xc0\x5d\x00\x00\x00\x00\x00")
	file = page(file, 0, 0, 1, "OpusTags\x06\x00\x00\x00sample\x00\x00\x00\x00")
	for from := 0; from < packets; from += perPage {
		n := min(perPage, packets-from)
		flags := byte(0)
		if from+n == packets {
			flags = 4 // the last one
		}
		list := make([]string, n)
		for i := range list {
			list[i] = packet
		}
		file = page(file, flags, uint64(from+n)*perPacket, uint32(2+from/perPage), list...)
	}
	return sectionOf(file)
}

// page appends an Ogg page of short packets.
func page(file []byte, flags byte, position uint64, number uint32, packets ...string) []byte {
	start := len(file)
	file = append(file, 'O', 'g', 'g', 'S', 0, flags)
	file = binary.LittleEndian.AppendUint64(file, position)
	file = binary.LittleEndian.AppendUint32(file, 1) // the stream
	file = binary.LittleEndian.AppendUint32(file, number)
	file = append(file, 0, 0, 0, 0, byte(len(packets)))
	for _, p := range packets {
		file = append(file, byte(len(p)))
	}
	file = append(file, strings.Join(packets, "")...)
	binary.LittleEndian.PutUint32(file[start+22:], oggSum(file[start:]))
	return file
}

// oggSum is Ogg's checksum: CRC-32 with the bits the other way round.
func oggSum(b []byte) (crc uint32) {
	for _, v := range b {
		crc ^= uint32(v) << 24
		for range 8 {
			if crc&(1<<31) != 0 {
				crc = crc<<1 ^ 0x04c11db7
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}
