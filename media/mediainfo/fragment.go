package mediainfo

import (
	"encoding/binary"
	"math"
)

// maxTracks limits the number of tracks whose defaults are kept.
const maxTracks = 16

// fragments adds up the length of a film that has all or most of its samples in fragments after the
// movie box.
type fragments struct {
	defaults map[uint32]uint32 // duration of a sample, by track
	piece    trackFragment     // the one being read
	first    uint64            // of the pictures, in their own units
	last     uint64
	any      bool // some of the pictures are in fragments
	unstated bool // some of them do not state their length
}

// trackFragment has the samples of one track in one fragment.
type trackFragment struct {
	track   uint32
	sample  uint32 // default duration of a sample
	base    uint64
	hasBase bool
	length  uint64
	samples uint64
}

// Flags of the boxes in a fragment. They say which fields are present.
const (
	tfhdBaseOffset   = 0x1
	tfhdDescription  = 0x2
	tfhdDuration     = 0x8
	trunOffset       = 0x1
	trunFirstFlags   = 0x4
	trunDuration     = 0x100
	trunSampleFields = 4 // from trunDuration on: duration, size, flags, time offset
)

// trackDefaults reads a trex, without its version and flags.
func (f *fragments) trackDefaults(b []byte) {
	if len(b) < 12 || len(f.defaults) >= maxTracks {
		return
	}
	if f.defaults == nil {
		f.defaults = map[uint32]uint32{}
	}
	f.defaults[binary.BigEndian.Uint32(b)] = binary.BigEndian.Uint32(b[8:])
}

// header reads a tfhd, without its version and flags.
func (f *fragments) header(flags uint32, b []byte) {
	if len(b) < 4 {
		return
	}
	f.piece.track = binary.BigEndian.Uint32(b)
	f.piece.sample = f.defaults[f.piece.track]
	at := 4
	if flags&tfhdBaseOffset != 0 {
		at += 8
	}
	if flags&tfhdDescription != 0 {
		at += 4
	}
	if flags&tfhdDuration != 0 && len(b) >= at+4 {
		f.piece.sample = binary.BigEndian.Uint32(b[at:])
	}
}

// begins reads a tfdt, without its version and flags.
func (f *fragments) begins(b []byte, long bool) {
	f.piece.base, f.piece.hasBase = duration(b, long)
}

// closeTrack adds the samples of a track's fragment to the film, if it is the main track.
func (f *fragments) closeTrack(main track) {
	p := f.piece
	f.piece = trackFragment{}
	if p.track != main.id || p.samples == 0 {
		return
	}
	if !f.any && main.samples {
		f.last, f.unstated = main.media, main.media == 0
	}
	if !p.hasBase {
		p.base = f.last
	}
	if p.length == 0 || p.base > math.MaxInt64 || p.length > math.MaxInt64 {
		f.any, f.unstated = true, true
		return
	}
	if !f.any && !main.samples || p.base < f.first {
		f.first = p.base
	}
	f.last, f.any = max(f.last, p.base+p.length), true
}

// run reads a trun word by word: it may be long.
type run struct {
	flags uint32
	count uint32
	seen  uint64 // words
	head  uint64 // words before the samples
	each  uint64 // words of a sample
}

func (r *run) word(w uint32, piece *trackFragment) {
	defer func() { r.seen++ }()
	switch r.seen {
	case 0:
		r.flags, r.head = w&0xffffff, 2
		for _, flag := range []uint32{trunOffset, trunFirstFlags} {
			if r.flags&flag != 0 {
				r.head++
			}
		}
		for i := range trunSampleFields {
			if r.flags&(trunDuration<<i) != 0 {
				r.each++
			}
		}
	case 1:
		r.count = w
		piece.samples += uint64(w)
		if r.flags&trunDuration == 0 {
			piece.length += uint64(w) * uint64(piece.sample)
		}
	default:
		if r.flags&trunDuration == 0 || r.seen < r.head {
			return
		}
		if i := r.seen - r.head; i%r.each == 0 && i/r.each < uint64(r.count) {
			piece.length += uint64(w)
		}
	}
}
