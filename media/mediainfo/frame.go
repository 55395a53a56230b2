package mediainfo

import "bytes"

// frame is what the header of one frame of a stream of sound says.
type frame struct {
	size    int    // bytes, header included
	samples uint32 // of each channel
	kind    uint32 // what all frames of a stream have in common
	rate    uint32 // samples a second
	side    int    // of layer III: where a first frame may have a summary instead of sound, behind its header
}

// frameScanner measures a sound that is nothing but frames, as MP3 and ADTS
// are, by counting them. Frames are what is there: the summary that an encoder
// puts into the first frame of an MP3 only says how much of them is padding.
//
// Tags before the frames are stepped over, and whatever lies between two
// frames. A header found in the midst of something else counts once another
// one follows where it says.
type frameScanner struct {
	headerLen int
	parse     func(header []byte) (frame, bool)

	head    []byte // of a frame or tag, as far as it has come
	skip    uint64
	first   frame // of the stream
	open    frame // the one that is being stepped over
	inside  bool
	doubted bool // the open one was found by searching
	lost    bool // what comes next is searched for a frame
	summary summary
	peek    []byte // of the first frame, for its summary
	peeking bool
	frames  uint64
	samples uint64
}

func newMPEG() *frameScanner { return &frameScanner{headerLen: mpegHeaderLen, parse: parseMPEG} }

func newADTS() *frameScanner { return &frameScanner{headerLen: adtsHeaderLen, parse: parseADTS} }

// id3HeadLen is the length of the header of an ID3v2 tag.
const id3HeadLen = 10

func (s *frameScanner) write(p []byte) {
	for len(p) > 0 {
		switch {
		case s.peeking:
			rest := collect(&s.peek, min(s.open.size-s.headerLen, summaryLen), p)
			s.skip -= uint64(len(p) - len(rest))
			p = rest
			if len(s.peek) == min(s.open.size-s.headerLen, summaryLen) {
				s.readSummary()
			}
		case s.skip > 0:
			p = pass(&s.skip, p)
		default:
			p = s.readHead(p)
		}
		if s.skip == 0 && !s.peeking {
			s.closeFrame()
		}
	}
}

// readHead takes what it needs of p to know what comes next.
func (s *frameScanner) readHead(p []byte) []byte {
	if s.lost && len(s.head) == 0 { // all frames begin so
		i := bytes.IndexByte(p, 0xff)
		if i < 0 {
			return nil
		}
		p = p[i:]
	}
	want := s.headerLen
	if bytes.HasPrefix(s.head, []byte("ID3")) {
		want = id3HeadLen
	}
	p = collect(&s.head, want, p)
	if len(s.head) < want {
		return p
	}
	if bytes.HasPrefix(s.head, []byte("ID3")) && !s.lost {
		if want < id3HeadLen {
			return p
		}
		s.openTag()
		return p
	}
	f, ok := s.parse(s.head)
	if !ok || !s.belongs(f) {
		s.lose()
		return p
	}
	s.confirm()
	s.open, s.inside, s.doubted = f, true, s.lost
	s.lost = false
	s.head = s.head[:0]
	s.skip = uint64(f.size - s.headerLen)
	if s.frames == 0 && f.side > 0 && f.size > s.headerLen {
		s.peeking, s.peek = true, s.peek[:0]
	}
	return p
}

// belongs reports whether the frame may be of the same stream as those before.
func (s *frameScanner) belongs(f frame) bool {
	before := s.first
	switch {
	case s.doubted:
		before = s.open
	case s.frames == 0:
		return true
	}
	return f.kind == before.kind && f.rate == before.rate
}

// lose gives up what was taken for a header, from its first byte on.
func (s *frameScanner) lose() {
	if s.doubted { // what was found was no frame, and its summary none
		s.open, s.doubted = frame{}, false
		if s.frames == 0 {
			s.summary = summary{}
		}
	}
	s.lost = true
	next := bytes.IndexByte(s.head[1:], 0xff)
	if next < 0 {
		s.head = s.head[:0]
		return
	}
	s.head = append(s.head[:0], s.head[1+next:]...)
}

func (s *frameScanner) openTag() {
	size := uint64(0)
	for _, b := range s.head[6:id3HeadLen] {
		size = size<<7 | uint64(b&0x7f)
	}
	if s.head[5]&0x10 != 0 { // a footer
		size += id3HeadLen
	}
	s.skip, s.head = size, s.head[:0]
}

// closeFrame counts the frame that has gone by whole.
func (s *frameScanner) closeFrame() {
	if !s.inside {
		return
	}
	s.inside = false
	if !s.doubted {
		s.count(s.open)
	}
}

// confirm counts a frame that was found by searching, now that another one
// follows it.
func (s *frameScanner) confirm() {
	if s.doubted {
		s.doubted = false
		s.count(s.open)
	}
}

func (s *frameScanner) count(f frame) {
	if s.frames == 0 {
		s.first = f
		if s.summary.found { // it holds no sound
			s.frames++
			return
		}
	}
	s.frames++
	s.samples += uint64(f.samples)
}

func (s *frameScanner) readSummary() {
	s.peeking = false
	s.summary = parseSummary(s.peek, s.open.side)
}

func (s *frameScanner) seconds() float64 {
	samples, padding := s.samples, s.summary.padding
	if !s.summary.found && s.first.side > 0 {
		padding = usualDelay
	}
	if samples > padding {
		samples -= padding
	}
	return ratio(samples, s.first.rate)
}

func (s *frameScanner) known() bool { return false }

// playable: anything may follow what looks like the header of a frame, but not
// another one where it says.
func (s *frameScanner) playable() bool { return s.frames > 1 && s.samples > 0 }
