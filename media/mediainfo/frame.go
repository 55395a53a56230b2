package mediainfo

import "bytes"

// frame has the values of a frame's header in an audio stream.
type frame struct {
	size    int    // bytes, header included
	samples uint32 // of each channel
	kind    uint32 // the same for all frames of a stream
	rate    uint32 // samples a second
	side    int    // of layer III: offset after the header of a summary in the first frame
}

// frameScanner measures audio that consists of frames, such as MP3 and ADTS, by counting the frames.
// From the summary that an encoder writes into the first frame of an MP3, it uses only the padding.
//
// It skips tags before the frames and other bytes between two frames. A header that it finds by
// searching counts once another header follows at the end of its frame.
type frameScanner struct {
	headerLen int
	parse     func(header []byte) (frame, bool)

	head    []byte // of a frame or tag, so far
	skip    uint64
	first   frame // of the stream
	open    frame // the current one
	inside  bool
	unsure  bool // the open one was found by searching
	lost    bool // the next bytes are searched for a frame
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

// readHead reads the header of the next frame or tag and returns the rest of p.
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
	s.open, s.inside, s.unsure = f, true, s.lost
	s.lost = false
	s.head = s.head[:0]
	s.skip = uint64(f.size - s.headerLen)
	if s.frames == 0 && f.side > 0 && f.size > s.headerLen {
		s.peeking, s.peek = true, s.peek[:0]
	}
	return p
}

// belongs reports whether the frame may be of the same stream as the frames before.
func (s *frameScanner) belongs(f frame) bool {
	before := s.first
	switch {
	case s.unsure:
		before = s.open
	case s.frames == 0:
		return true
	}
	return f.kind == before.kind && f.rate == before.rate
}

// lose drops bytes that were no header and searches on after the first of them.
func (s *frameScanner) lose() {
	if s.unsure { // the open frame was none, nor was its summary
		s.open, s.unsure = frame{}, false
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

// closeFrame counts the frame that was read completely.
func (s *frameScanner) closeFrame() {
	if !s.inside {
		return
	}
	s.inside = false
	if !s.unsure {
		s.count(s.open)
	}
}

// confirm counts a frame that was found by searching, once another frame follows it.
func (s *frameScanner) confirm() {
	if s.unsure {
		s.unsure = false
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

// playable reports whether two frames followed each other. A single header may be other bytes that
// look like one.
func (s *frameScanner) playable() bool { return s.frames > 1 && s.samples > 0 }
