package mediainfo

import "encoding/binary"

const (
	riffHeadLen  = 12
	chunkHeadLen = 8
	formatMax    = 40 // of a WAVE_FORMAT_EXTENSIBLE
	// openEnd is the size that an encoder writes when it does not know the length yet.
	openEnd = 1<<32 - 1
)

// Format tags of audio with blocks of equal length. Compressed formats state bytes a second too, but
// encoders often get that wrong.
const (
	wavePCM        = 1
	waveADPCM      = 2
	waveFloat      = 3
	waveALaw       = 6
	waveMuLaw      = 7
	waveIMA        = 0x11
	waveYamaha     = 0x20
	waveGSM        = 0x31
	waveExtensible = 0xfffe
)

// waveScanner walks the chunks of a WAV file. It measures the data that is there, since the header may
// state another length, or none.
type waveScanner struct {
	head    []byte
	want    int // bytes to collect; 0: the file's head
	inside  string
	rest    uint64 // bytes of a chunk after its kept part
	skip    uint64
	toEnd   bool   // the data lasts to the end of the file
	rate    uint32 // bytes a second, as stated
	fact    uint32 // samples, of a compressed sound
	samples uint32 // samples a second
	block   uint64 // bytes of a block; 0: blocks differ in length
	each    uint64 // samples of a block, of each channel
	data    uint64 // bytes
	reading uint64 // bytes of the data chunk still to come
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

// read reads the collected bytes: the head of the file or of a chunk, or a format.
func (s *waveScanner) read() {
	switch {
	case s.want == 0:
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
		if s.data > 0 { // players play only the first
			s.done = true
			return
		}
		s.toEnd = size == openEnd || size == 0
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

// collect keeps the first want bytes of a chunk, to be read.
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
	s.block, s.each = uint64(binary.LittleEndian.Uint16(b[12:])), 0
	channels, bits := uint64(binary.LittleEndian.Uint16(b[2:])), uint64(binary.LittleEndian.Uint16(b[14:]))
	switch tag {
	case wavePCM, waveFloat, waveALaw, waveMuLaw:
		s.each = 1
	case waveYamaha:
		if channels*bits > 0 {
			s.each = s.block * 8 / (channels * bits)
		}
	case waveADPCM, waveIMA, waveGSM:
		if len(b) >= 20 {
			s.each = uint64(binary.LittleEndian.Uint16(b[18:]))
		}
	}
}

func (s *waveScanner) seconds() float64 {
	switch {
	case s.each != 1 && s.data > 0 && s.fact > 0 && s.samples > 0 && !s.toEnd && s.reading == 0:
		return ratio(uint64(s.fact), s.samples)
	case s.block > 0 && s.each > 0 && s.samples > 0:
		return float64(s.data) / float64(s.block) * float64(s.each) / float64(s.samples)
	default:
		return ratio(s.data, s.rate)
	}
}

func (s *waveScanner) known() bool { return s.done }

func (s *waveScanner) playable() bool { return s.data > 0 && s.samples > 0 }
