package mediainfo

import "encoding/binary"

const (
	riffHeadLen  = 12
	chunkHeadLen = 8
	formatMax    = 40 // of a WAVE_FORMAT_EXTENSIBLE
	// openEnd is the size of what a stream wrote before it knew how much would come.
	openEnd = 1<<32 - 1
)

// Format tags of sound of which each block is as long as the other.
const (
	wavePCM        = 1
	waveFloat      = 3
	waveALaw       = 6
	waveMuLaw      = 7
	waveExtensible = 0xfffe
)

// waveScanner walks the chunks of a WAV file. The length is that of the data
// that came, of which the header may state more, or nothing.
type waveScanner struct {
	head    []byte
	want    int // bytes to collect; 0: the file's head
	inside  string
	rest    uint64 // of a chunk behind its format
	skip    uint64
	toEnd   bool   // what is written as long as the file lasts
	endless bool   // the file's own size is unknown
	rate    uint32 // bytes a second
	fact    uint32 // samples, of a compressed sound
	samples uint32 // samples a second
	exact   bool   // rate follows from the blocks
	data    uint64 // bytes
	reading uint64 // what of the data chunk is still to come
	done    bool
}

func (s *waveScanner) write(p []byte) {
	for len(p) > 0 && !s.done {
		switch {
		case s.toEnd:
			s.data += uint64(len(p))
			return
		case s.reading > 0:
			n := min(s.reading, uint64(len(p)))
			s.data, s.reading, p = s.data+n, s.reading-n, p[n:]
		case s.skip > 0:
			p = pass(&s.skip, p)
		default:
			want := s.want
			if want == 0 {
				want = riffHeadLen
			}
			if p = collect(&s.head, want, p); len(s.head) == want {
				s.read()
				s.head = s.head[:0]
			}
		}
	}
}

// read takes what was collected: the head of the file or of a chunk, or a
// format.
func (s *waveScanner) read() {
	switch {
	case s.want == 0:
		size := binary.LittleEndian.Uint32(s.head[4:])
		s.endless = size == 0 || size == openEnd
		s.want = chunkHeadLen
	case s.inside != "":
		if s.inside == "fmt " {
			s.readFormat(s.head)
		} else {
			s.fact = binary.LittleEndian.Uint32(s.head)
		}
		s.inside, s.want, s.skip = "", chunkHeadLen, s.rest
	default:
		s.openChunk(s.head[:4], uint64(binary.LittleEndian.Uint32(s.head[4:])))
	}
}

func (s *waveScanner) openChunk(id []byte, size uint64) {
	padded := size + size&1
	s.skip = padded
	switch string(id) {
	case "data":
		if s.data > 0 { // one is all that players play
			s.done = true
			return
		}
		s.toEnd = size == openEnd || size == 0 && s.endless
		s.reading, s.skip = size, size&1
	case "fmt ":
		if size >= 16 {
			s.collect("fmt ", int(min(size, formatMax)), padded)
		}
	case "fact":
		if size >= 4 {
			s.collect("fact", 4, padded)
		}
	}
}

// collect has the beginning of a chunk kept, to be read.
func (s *waveScanner) collect(id string, want int, size uint64) {
	s.inside, s.want, s.rest, s.skip = id, want, size-uint64(want), 0
}

func (s *waveScanner) readFormat(b []byte) {
	tag := binary.LittleEndian.Uint16(b)
	if tag == waveExtensible && len(b) >= 26 {
		tag = binary.LittleEndian.Uint16(b[24:]) // the first word of the sub-format
	}
	s.samples = binary.LittleEndian.Uint32(b[4:])
	s.rate = binary.LittleEndian.Uint32(b[8:])
	block := uint64(binary.LittleEndian.Uint16(b[12:]))
	switch tag {
	case wavePCM, waveFloat, waveALaw, waveMuLaw:
		if rate := uint64(s.samples) * block; rate > 0 && rate <= 1<<32-1 {
			s.rate, s.exact = uint32(rate), true
		}
	}
}

func (s *waveScanner) seconds() float64 {
	if s.data > 0 && !s.exact && s.fact > 0 && s.samples > 0 && !s.toEnd && s.reading == 0 {
		return ratio(uint64(s.fact), s.samples)
	}
	return ratio(s.data, s.rate)
}

func (s *waveScanner) known() bool { return s.done }

func (s *waveScanner) playable() bool { return s.data > 0 && s.samples > 0 }
