package mediainfo

import (
	"encoding/binary"
	"math"
)

// leafMax is the number of bytes kept of a header box: the length of the longest, a track header of
// version 1.
const leafMax = 96

// boxScanner walks the boxes of an ISO base media file (MP4, MOV) in one pass. It skips media data,
// enters the few boxes that lead to the headers, and keeps at most leafMax bytes, wherever the movie
// box is and whatever sizes the file states.
type boxScanner struct {
	off    uint64 // bytes consumed
	skip   uint64 // bytes still to skip
	open   []openBox
	header [16]byte
	nhead  int
	leaf   [leafMax]byte
	nleaf  int
	want   int    // bytes of the leaf to keep; 0: no leaf is being read
	leafID string // its type
	rest   uint64 // bytes of the leaf after its kept part
	done   bool   // the movie box has been read, or the file breaks the format
	begun  bool   // the movie box was found
	// complete: the movie box was read to its end.
	complete bool
	// pieces: a fragment was found after the movie box.
	pieces bool
	run    run // the samples that are being read
	inRun  bool
	movie  movie
}

type openBox struct {
	id  string
	end uint64
}

// boxIDs are the box types that the scanner reads; it skips all others. A fragmented film has
// thousands of boxes, so the map saves allocating their names.
var boxIDs = func() map[string]string {
	ids := map[string]string{}
	for _, id := range []string{
		"moov", "mvhd", "mvex", "mehd", "trex", "trak", "tkhd", "mdia", "mdhd", "hdlr", "minf", "stbl", "stts", "moof",
		"traf", "tfhd", "tfdt", "trun",
	} {
		ids[id] = id
	}
	return ids
}()

// isContainer reports whether the scanner enters a box, given its parent.
func isContainer(parent, id string) bool {
	switch parent {
	case "":
		return id == "moov" || id == "moof"
	case "moof":
		return id == "traf"
	case "moov":
		return id == "trak" || id == "mvex"
	case "trak":
		return id == "mdia"
	case "mdia":
		return id == "minf"
	case "minf":
		return id == "stbl"
	}
	return false
}

func isLeaf(parent, id string) bool {
	switch parent {
	case "moov":
		return id == "mvhd"
	case "mvex":
		return id == "mehd" || id == "trex"
	case "traf":
		return id == "tfhd" || id == "tfdt"
	case "trak":
		return id == "tkhd"
	case "mdia":
		return id == "mdhd" || id == "hdlr"
	case "stbl":
		return id == "stts"
	}
	return false
}

func (s *boxScanner) write(p []byte) {
	for len(p) > 0 && !s.done {
		switch {
		case s.inRun:
			p = s.consume(p, s.readRun(p))
		case s.skip > 0:
			n := min(s.skip, uint64(len(p)))
			s.skip -= n
			p = s.consume(p, int(n))
		case s.want > 0:
			n := copy(s.leaf[s.nleaf:s.want], p)
			s.nleaf += n
			p = s.consume(p, n)
			if s.nleaf == s.want {
				s.movie.read(s.leafID, s.leaf[:s.want])
				s.want, s.nleaf, s.skip = 0, 0, s.rest
			}
		default:
			p = s.consume(p, s.readHeader(p))
		}
		if s.skip == 0 && s.want == 0 && s.nhead == 0 && !s.inRun {
			s.closeEnded()
		}
	}
}

func (s *boxScanner) consume(p []byte, n int) []byte {
	s.off += uint64(n)
	return p[n:]
}

// readHeader reads a box header from p, opens the box when the header is complete, and returns the
// number of bytes used.
func (s *boxScanner) readHeader(p []byte) int {
	need := 8
	if s.nhead >= 8 {
		need = 16
	}
	n := copy(s.header[s.nhead:need], p)
	s.nhead += n
	if s.nhead < need {
		return n
	}
	start := s.off + uint64(n) - uint64(need)
	size := uint64(binary.BigEndian.Uint32(s.header[:4]))
	if size == 1 && need == 8 {
		return n // a 64-bit size follows
	}
	if need == 16 {
		size = binary.BigEndian.Uint64(s.header[8:])
	}
	s.nhead = 0
	s.openBox(boxIDs[string(s.header[4:8])], start, size, uint64(need))
	return n
}

// openBox decides whether to enter, read or skip the box at start, whose header of length head was
// just read. The first movie box counts.
func (s *boxScanner) openBox(id string, start, size, head uint64) {
	parent, limit := "", uint64(math.MaxUint64)
	if n := len(s.open); n > 0 {
		parent, limit = s.open[n-1].id, s.open[n-1].end
	}
	if size == 0 {
		// To the end of the file, or of the box around it.
		size = limit - start
	}
	if size < head || size > limit-start {
		s.done = true
		return
	}
	payload := size - head
	switch {
	case id == "moov" && s.complete:
		s.skip = payload
	case parent == "traf" && id == "trun":
		s.rest, s.run, s.inRun = payload, run{}, payload > 0
	case isContainer(parent, id):
		s.begun = s.begun || id == "moov"
		s.pieces = s.pieces || id == "moof" && s.complete
		s.open = append(s.open, openBox{id: id, end: start + size})
		s.movie.enter(id)
	case isLeaf(parent, id) && payload > 0:
		s.leafID, s.want = id, int(min(payload, leafMax))
		s.rest = payload - uint64(s.want)
	default:
		s.skip = payload
	}
}

// readRun reads the words of a list of samples from p and returns the number of bytes used.
func (s *boxScanner) readRun(p []byte) int {
	n := int(min(s.rest, uint64(len(p))))
	for _, b := range p[:n] {
		s.leaf[s.nleaf] = b
		if s.nleaf++; s.nleaf == 4 {
			s.run.word(binary.BigEndian.Uint32(s.leaf[:4]), &s.movie.fragments.piece)
			s.nleaf = 0
		}
	}
	if s.rest -= uint64(n); s.rest == 0 {
		s.inRun, s.nleaf = false, 0
	}
	return n
}

// closeEnded closes the boxes that end here. Bytes too few for a header are padding.
func (s *boxScanner) closeEnded() {
	for len(s.open) > 0 {
		last := s.open[len(s.open)-1]
		if left := last.end - s.off; left > 0 {
			if left < 8 {
				s.skip = left
			}
			return
		}
		s.open = s.open[:len(s.open)-1]
		switch last.id {
		case "moov":
			s.complete = true
			s.done = !s.movie.inFragments() // later boxes cannot change its values
		case "traf":
			s.movie.fragments.closeTrack(s.movie.mainTrack())
		}
	}
}

// unfit returns what is wrong with the movie box of a complete film or sound.
func (s *boxScanner) unfit(audio bool) error {
	found, none := s.movie.found, noPictures
	if audio {
		found, none = s.movie.heard, noSound
	}
	switch {
	case s.complete && found:
		return nil
	case s.complete:
		return none
	case s.begun, audio:
		return unreadable
	default:
		return noMovie
	}
}

// fault returns the error of unfit, or noLength if there is nothing to play. A film in fragments
// needs no length: fragments may omit theirs.
func (s *boxScanner) fault(audio bool) error {
	length := s.info().Duration // info also closes the last track
	if err := s.unfit(audio); err != nil {
		return err
	}
	if s.pieces || length > 0 && length <= maxSeconds {
		return nil
	}
	return noLength
}

func (s *boxScanner) info() Info { return s.movie.info() }
