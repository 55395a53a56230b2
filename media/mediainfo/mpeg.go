package mediainfo

import (
	"bytes"
	"encoding/binary"
)

const mpegHeaderLen = 4

// Bit rates in kbit/s, by index. Index 0 is a stream without a stated rate; 15 is invalid. The second
// table is for MPEG 2 and 2.5.
var (
	mpeg1Rates = [4][15]int{
		1: {0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
		2: {0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384},
		3: {0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448},
	}
	mpeg2Rates = [4][15]int{
		1: {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
		2: {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
		3: {0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256},
	}
)

// The values of the fields of a header.
const (
	mpegVersion25 = 0
	mpegVersion1  = 3
	layer3        = 1
	layer2        = 2
	layer1        = 3
	mono          = 3
)

// parseMPEG parses a frame header of MPEG 1, 2 or 2.5, layer I to III. It refuses streams without a
// stated bit rate, whose frames have no known end.
func parseMPEG(h []byte) (frame, bool) {
	if h[0] != 0xff || h[1]&0xe0 != 0xe0 {
		return frame{}, false
	}
	version, layer := int(h[1]>>3&3), int(h[1]>>1&3)
	rateIndex, bitIndex := int(h[2]>>2&3), int(h[2]>>4)
	if version == 1 || layer == 0 || rateIndex == 3 || bitIndex == 0 || bitIndex == 15 {
		return frame{}, false
	}
	rate := [3]int{44100, 48000, 32000}[rateIndex]
	bits := mpeg1Rates[layer][bitIndex] * 1000
	if version != mpegVersion1 {
		bits = mpeg2Rates[layer][bitIndex] * 1000
		rate /= 2
	}
	if version == mpegVersion25 {
		rate /= 2
	}
	padding := int(h[2] >> 1 & 1)
	f := frame{kind: uint32(h[1] >> 1 & 0xf), rate: uint32(rate)}
	switch {
	case layer == layer1:
		f.samples, f.size = 384, (12*bits/rate+padding)*4
	case layer == layer2:
		f.samples, f.size = 1152, 144*bits/rate+padding
	case version == mpegVersion1:
		f.samples, f.size = 1152, 144*bits/rate+padding
	default:
		f.samples, f.size = 576, 72*bits/rate+padding
	}
	if layer == layer3 {
		f.side = sideInfoLen(version, int(h[3]>>6))
	}
	return f, f.size > mpegHeaderLen
}

// sideInfoLen returns the length of the side information between the header of a layer III frame and
// its sound. A summary follows it.
func sideInfoLen(version, mode int) int {
	switch {
	case version == mpegVersion1 && mode != mono:
		return 32
	case version == mpegVersion1, mode != mono:
		return 17
	default:
		return 9
	}
}

// summary is an encoder's description of a whole MP3 in its first frame: Xing and Info after the side
// information, VBRI at a fixed offset.
type summary struct {
	found   bool
	padding uint64 // samples, before and after the sound
}

// usualDelay is the number of samples before the sound in a file without a summary: encoders of layer
// III add 576 and decoders 529. An encoder that writes to a pipe cannot write a summary.
const usualDelay = 576 + 529

const (
	vbriAt = 32
	// summaryLen is the number of bytes after the header that are searched for a summary.
	summaryLen = 32 + 120 + 36
)

// Flags of a Xing header. They say which fields are present.
const (
	xingFrames = 1
	xingBytes  = 2
	xingTable  = 4
	xingScale  = 8
)

func parseSummary(b []byte, side int) summary {
	if len(b) >= vbriAt+4 && string(b[vbriAt:vbriAt+4]) == "VBRI" {
		return summary{found: true}
	}
	if len(b) < side+8 {
		return summary{}
	}
	b = b[side:]
	if word := string(b[:4]); word != "Xing" && word != "Info" {
		return summary{}
	}
	flags, at := binary.BigEndian.Uint32(b[4:]), 8
	for _, field := range []struct {
		flag uint32
		size int
	}{{xingFrames, 4}, {xingBytes, 4}, {xingTable, 100}, {xingScale, 4}} {
		if flags&field.flag != 0 {
			at += field.size
		}
	}
	s := summary{found: true}
	if len(b) < at+24 {
		return s
	}
	encoder := b[at:]
	for _, name := range []string{"LAME", "Lavf", "Lavc"} {
		if bytes.HasPrefix(encoder, []byte(name)) { // then two numbers of 12 bits follow
			s.padding = uint64(encoder[21])<<4 | uint64(encoder[22])>>4
			s.padding += uint64(encoder[22]&0xf)<<8 | uint64(encoder[23])
		}
	}
	return s
}
