package mediainfo

import "encoding/binary"

// flacHeadLen is the number of bytes read of a FLAC: its mark, the header of a block of metadata,
// and the beginning of the stream's description in it.
const flacHeadLen = 26

// flacScanner reads the length from the stream's description. An encoder that writes to a pipe leaves
// it empty.
type flacScanner struct{ head []byte }

func (s *flacScanner) write(p []byte) { collect(&s.head, flacHeadLen, p) }

func (s *flacScanner) rate() uint32 {
	if !s.known() || s.head[4]&0x7f != 0 {
		return 0
	}
	return binary.BigEndian.Uint32(s.head[18:]) >> 12
}

func (s *flacScanner) seconds() float64 {
	rate := s.rate()
	if rate == 0 {
		return 0
	}
	const bits = 36
	return ratio(binary.BigEndian.Uint64(s.head[18:])&(1<<bits-1), rate)
}

func (s *flacScanner) known() bool { return len(s.head) == flacHeadLen }

func (s *flacScanner) playable() bool { return s.rate() > 0 }
