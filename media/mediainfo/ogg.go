package mediainfo

import (
	"bytes"
	"encoding/binary"
	"math"
)

const (
	oggHeadLen  = 27
	oggBegins   = 2  // the flag of the first page of a stream
	oggIdentLen = 40 // of the first packet, as far as it is read
	opusRate    = 48000
)

// oggScanner walks the pages of an Ogg file: the last position that a page of
// the sound states is its length. Sounds one after the other add up; of those
// that run beside each other, or beside pictures, the first counts.
type oggScanner struct {
	state   oggState
	head    []byte
	skip    uint64
	opening uint32 // the stream whose first packet is being read
	payload uint64 // of its page

	found  bool   // a sound
	serial uint32 // of its stream
	rate   uint32
	before uint64 // samples that are not played
	last   uint64 // position
	ended  float64
}

// oggState is what is being read.
type oggState int

const (
	oggHead oggState = iota
	oggSegments
	oggIdent
	oggPayload
)

func (s *oggScanner) write(p []byte) {
	for len(p) > 0 {
		switch s.state {
		case oggHead:
			p = s.findPage(p)
		case oggSegments:
			want := oggHeadLen + int(s.head[26])
			if p = collect(&s.head, want, p); len(s.head) == want {
				s.openPage()
			}
		case oggIdent:
			want := int(min(s.payload, oggIdentLen))
			if p = collect(&s.head, want, p); len(s.head) == want {
				s.readIdent(s.head)
				s.stepOver(s.payload - uint64(want))
			}
		case oggPayload:
			if p = pass(&s.skip, p); s.skip == 0 {
				s.state = oggHead
			}
		}
	}
}

// findPage takes the head of a page, wherever the next one is.
func (s *oggScanner) findPage(p []byte) []byte {
	const magic = "OggS"
	p = collect(&s.head, oggHeadLen, p)
	for len(s.head) > 0 && !bytes.HasPrefix(s.head, []byte(magic[:min(len(s.head), len(magic))])) {
		next := bytes.IndexByte(s.head[1:], magic[0])
		if next < 0 {
			s.head = s.head[:0]
			break
		}
		s.head = append(s.head[:0], s.head[1+next:]...)
	}
	if len(s.head) == oggHeadLen {
		s.state = oggSegments
		if s.head[26] == 0 {
			s.openPage()
		}
	}
	return p
}

// openPage reads the head of a page.
func (s *oggScanner) openPage() {
	s.payload = 0
	for _, n := range s.head[oggHeadLen:] {
		s.payload += uint64(n)
	}
	position := binary.LittleEndian.Uint64(s.head[6:])
	serial := binary.LittleEndian.Uint32(s.head[14:])
	switch {
	case s.head[5]&oggBegins != 0 && s.payload > 0:
		s.opening, s.state, s.head = serial, oggIdent, s.head[:0]
		return
	case s.found && serial == s.serial && position <= math.MaxInt64: // more says that no packet ends here
		s.last = max(s.last, position)
	}
	s.stepOver(s.payload)
}

func (s *oggScanner) stepOver(n uint64) {
	s.state, s.skip, s.head = oggPayload, n, s.head[:0]
	if n == 0 {
		s.state = oggHead
	}
}

// readIdent reads the first packet of a stream, which tells what it is.
func (s *oggScanner) readIdent(b []byte) {
	var rate uint32
	var before uint64
	switch {
	case bytes.HasPrefix(b, []byte("\x01vorbis")) && len(b) >= 16:
		rate = binary.LittleEndian.Uint32(b[12:])
	case bytes.HasPrefix(b, []byte("OpusHead")) && len(b) >= 12:
		rate, before = opusRate, uint64(binary.LittleEndian.Uint16(b[10:]))
	case bytes.HasPrefix(b, []byte("\x7fFLAC")) && len(b) >= 30: // its description follows
		rate = uint32(b[27])<<12 | uint32(b[28])<<4 | uint32(b[29])>>4
	case bytes.HasPrefix(b, []byte("Speex   ")) && len(b) >= 40:
		rate = binary.LittleEndian.Uint32(b[36:])
	}
	if rate == 0 || s.found && s.last == 0 {
		return
	}
	s.ended += s.current()
	s.found, s.serial, s.rate, s.before, s.last = true, s.opening, rate, before, 0
}

func (s *oggScanner) current() float64 {
	if s.last <= s.before {
		return 0
	}
	return ratio(s.last-s.before, s.rate)
}

func (s *oggScanner) seconds() float64 { return s.ended + s.current() }

func (s *oggScanner) known() bool { return false }

func (s *oggScanner) playable() bool { return s.ended > 0 || s.found && s.last > 0 }
