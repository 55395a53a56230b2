package mediainfo

import "bytes"

const (
	flacMagicLen  = 4
	flacBlockLen  = 4  // header of a block of metadata
	streamInfoLen = 18 // as far as it is read
	flacFrameLen  = 16 // the longest header of a frame
)

// flacScanner reads the length from the metadata. Where an encoder could not
// know it, since it wrote to a stream, the frames are followed: the last one
// says where in the sound it is.
type flacScanner struct {
	head     []byte
	want     int
	inside   bool // the block that is collected is the stream's description
	last     bool // no metadata follow
	skip     uint64
	rest     uint64
	rate     uint32
	total    uint64
	frames   bool   // the frames have begun
	expected uint64 // number of the next frame, or of its first sample
	samples  uint64
	done     bool
}

func (s *flacScanner) write(p []byte) {
	for len(p) > 0 && !s.done {
		switch {
		case s.frames:
			p = s.follow(p)
		case s.skip > 0:
			p = pass(&s.skip, p)
			if s.skip == 0 {
				s.frames = s.last
			}
		default:
			if s.want == 0 {
				s.want = flacMagicLen
			}
			if p = collect(&s.head, s.want, p); len(s.head) == s.want {
				s.read()
				s.head = s.head[:0]
			}
		}
	}
}

func (s *flacScanner) read() {
	switch {
	case s.inside:
		s.readInfo(s.head)
		s.inside, s.want, s.skip = false, flacBlockLen, s.rest
		s.done = s.total > 0
		s.frames = s.last && s.skip == 0
	case s.want == flacMagicLen && bytes.Equal(s.head, []byte("fLaC")):
	default:
		size := uint64(s.head[1])<<16 | uint64(s.head[2])<<8 | uint64(s.head[3])
		s.last = s.head[0]&0x80 != 0
		if s.head[0]&0x7f == 0 && size >= streamInfoLen {
			s.inside, s.want, s.rest = true, streamInfoLen, size-streamInfoLen
			return
		}
		s.skip = size
		s.frames = s.last && size == 0
	}
}

// readInfo reads the description of the stream.
func (s *flacScanner) readInfo(b []byte) {
	s.rate = uint32(b[10])<<12 | uint32(b[11])<<4 | uint32(b[12])>>4
	s.total = uint64(b[13]&0xf)<<32 | uint64(b[14])<<24 | uint64(b[15])<<16 | uint64(b[16])<<8 | uint64(b[17])
}

// follow looks for the header of the next frame.
func (s *flacScanner) follow(p []byte) []byte {
	if len(s.head) == 0 {
		i := bytes.IndexByte(p, 0xff)
		if i < 0 {
			return nil
		}
		p = p[i:]
	}
	p = collect(&s.head, flacFrameLen, p)
	if len(s.head) < flacFrameLen {
		return p
	}
	s.try()
	next := bytes.IndexByte(s.head[1:], 0xff)
	if next < 0 {
		s.head = s.head[:0]
	} else {
		s.head = append(s.head[:0], s.head[1+next:]...)
	}
	return p
}

// try takes what was collected for the header of a frame, if it is that of the
// next one: it says which it is, and guards that with a checksum.
func (s *flacScanner) try() {
	h := s.head
	if len(h) < 6 || h[0] != 0xff || h[1]&0xfe != 0xf8 {
		return
	}
	number, n := flacNumber(h[4:])
	if n == 0 || number != s.expected {
		return
	}
	at := 4 + n
	size := uint32(0)
	switch code := h[2] >> 4; {
	case code == 1:
		size = 192
	case code >= 2 && code <= 5:
		size = 576 << (code - 2)
	case code == 6 && at < len(h):
		size = uint32(h[at]) + 1
		at++
	case code == 7 && at+1 < len(h):
		size = (uint32(h[at])<<8 | uint32(h[at+1])) + 1
		at += 2
	case code >= 8:
		size = 256 << (code - 8)
	}
	switch h[2] & 0xf { // a rate of the frame's own
	case 12:
		at++
	case 13, 14:
		at += 2
	}
	if size == 0 || at >= len(h) || crc8(h[:at]) != h[at] {
		return
	}
	s.samples += uint64(size)
	if h[1]&1 == 0 { // frames are counted
		s.expected++
	} else {
		s.expected = s.samples
	}
}

// flacNumber reads a number that is written as UTF-8 writes runes, of up to 36
// bits, and says how many bytes it takes: 0 for none.
func flacNumber(b []byte) (v uint64, n int) {
	first := b[0]
	switch {
	case first < 0x80:
		return uint64(first), 1
	case first < 0xc0 || first == 0xff:
		return 0, 0
	}
	for n = 1; first&(0x80>>n) != 0; n++ {
	}
	v = uint64(first & (0x7f >> n))
	if len(b) < n {
		return 0, 0
	}
	for _, c := range b[1:n] {
		if c&0xc0 != 0x80 {
			return 0, 0
		}
		v = v<<6 | uint64(c&0x3f)
	}
	return v, n
}

func crc8(b []byte) (crc byte) {
	for _, c := range b {
		crc ^= c
		for range 8 {
			if crc&0x80 != 0 {
				crc = crc<<1 ^ 7
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

func (s *flacScanner) seconds() float64 {
	if s.total > 0 {
		return ratio(s.total, s.rate)
	}
	samples := s.samples
	if !s.done && s.frames { // the last header may stand too near the end
		tail := *s
		tail.head = append([]byte(nil), s.head...)
		for len(tail.head) >= 6 {
			tail.try()
			next := bytes.IndexByte(tail.head[1:], 0xff)
			if next < 0 {
				break
			}
			tail.head = tail.head[1+next:]
		}
		samples = tail.samples
	}
	return ratio(samples, s.rate)
}

func (s *flacScanner) known() bool { return s.done }

func (s *flacScanner) playable() bool { return s.seconds() > 0 }
