package mediainfo

const adtsHeaderLen = 7

var adtsRates = [...]uint32{96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350}

// parseADTS reads the header of a frame of AAC. A frame holds up to four
// blocks of 1024 samples.
func parseADTS(h []byte) (frame, bool) {
	if h[0] != 0xff || h[1]&0xf6 != 0xf0 {
		return frame{}, false
	}
	index := int(h[2] >> 2 & 0xf)
	size := int(h[3]&3)<<11 | int(h[4])<<3 | int(h[5]>>5)
	if index >= len(adtsRates) || size <= adtsHeaderLen {
		return frame{}, false
	}
	return frame{size: size, samples: 1024 * (uint32(h[6]&3) + 1), rate: adtsRates[index]}, true
}
