package mediainfo

import (
	"encoding/binary"
	"math"
)

// movie has the values of a film's header boxes.
type movie struct {
	scale    uint32 // time units a second, for the film and its track headers
	duration uint64
	extended uint64 // of all fragments, in the same units
	track    track  // the one being read
	video    track  // the first track of pictures that has a size
	found    bool
	sound    track // the first of sound
	heard    bool

	fragmented bool
	fragments  fragments
}

type track struct {
	id       uint32
	video    bool
	sound    bool
	duration uint64 // as presented, in the film's units
	scale    uint32
	media    uint64 // length of the media, in the track's own units
	samples  bool   // the movie box has samples of its own
	width    int
	height   int
}

// known returns v, or zero if v is the field's value for "unknown".
func known(v, unknown uint64) uint64 {
	if v == unknown {
		return 0
	}
	return v
}

func (m *movie) enter(id string) {
	m.fragmented = m.fragmented || id == "mvex"
	if id == "trak" {
		m.keep()
		m.track = track{}
	}
}

// keep stores the track just read if it is the first to report.
func (m *movie) keep() {
	if m.track.video && (!m.found || m.video.width == 0 || m.video.height == 0) {
		m.video, m.found = m.track, true
	}
	if m.track.sound && !m.heard {
		m.sound, m.heard = m.track, true
	}
}

// mainTrack returns the track whose length counts: that of the pictures, or of the sound without pictures.
func (m *movie) mainTrack() track {
	if !m.found && m.heard {
		return m.sound
	}
	return m.video
}

// read reads the payload of a header box, cut to leafMax. It ignores boxes that are too short.
func (m *movie) read(id string, b []byte) {
	if len(b) < 4 {
		return
	}
	long, flags := b[0] == 1, binary.BigEndian.Uint32(b)&0xffffff
	b = b[4:] // version and flags
	switch id {
	case "mvhd":
		m.scale, m.duration = times(b, long)
	case "mehd":
		m.extended, _ = duration(b, long)
	case "trex":
		m.fragments.trackDefaults(b)
	case "tfhd":
		m.fragments.header(flags, b)
	case "tfdt":
		m.fragments.begins(b, long)
	case "mdhd":
		m.track.scale, m.track.media = times(b, long)
	case "hdlr":
		m.track.video = len(b) >= 8 && string(b[4:8]) == "vide"
		m.track.sound = len(b) >= 8 && string(b[4:8]) == "soun"
	case "tkhd":
		m.track.readHeader(b, long)
	case "stts":
		m.track.samples = len(b) >= 4 && binary.BigEndian.Uint32(b) > 0
	}
}

// times reads creation and modification time, time scale and duration.
func times(b []byte, long bool) (scale uint32, d uint64) {
	at := 8
	if long {
		at = 16
	}
	if len(b) < at+4 {
		return 0, 0
	}
	d, ok := duration(b[at+4:], long)
	if !ok {
		return 0, 0
	}
	return binary.BigEndian.Uint32(b[at:]), d
}

func duration(b []byte, long bool) (d uint64, ok bool) {
	switch {
	case long && len(b) >= 8:
		return known(binary.BigEndian.Uint64(b), math.MaxUint64), true
	case !long && len(b) >= 4:
		return known(uint64(binary.BigEndian.Uint32(b)), math.MaxUint32), true
	}
	return 0, false
}

func (t *track) readHeader(b []byte, long bool) {
	at := 16 // times, track id, reserved
	if long {
		at = 24
	}
	if len(b) < at {
		return
	}
	t.id = binary.BigEndian.Uint32(b[at-8:])
	d, ok := duration(b[at:], long)
	if !ok {
		return
	}
	t.duration = d
	at += 4
	if long {
		at += 4
	}
	matrix := at + 16 // reserved, layer, group, volume, reserved
	if len(b) < matrix+44 {
		return
	}
	word := func(i int) uint32 { return binary.BigEndian.Uint32(b[matrix+4*i:]) }
	t.width, t.height = fixed(word(9)), fixed(word(10))
	// A quarter turn: players show the picture with its sides swapped.
	if word(0) == 0 && word(4) == 0 && word(1) != 0 && word(3) != 0 {
		t.width, t.height = t.height, t.width
	}
}

// fixed rounds a 16.16 number to the nearest integer.
func fixed(v uint32) int { return int((uint64(v) + 1<<15) >> 16) }

// inFragments reports whether fragments add to the length of the film and the movie box does not
// state the sum.
func (m *movie) inFragments() bool {
	m.keep()
	return m.fragmented && (m.extended == 0 || m.scale == 0)
}

func (m *movie) info() Info {
	m.keep()
	return Info{Width: m.video.width, Height: m.video.height, Duration: m.seconds()}
}

// seconds returns the length of the film; 0 if it is unknown.
func (m *movie) seconds() float64 {
	main := m.mainTrack()
	if m.inFragments() && m.fragments.any {
		if m.fragments.unstated {
			return 0
		}
		return ratio(m.fragments.last-m.fragments.first, main.scale)
	}
	for _, d := range []struct {
		units uint64
		scale uint32
	}{
		{m.extended, m.scale},
		{main.duration, m.scale}, // as shown, edits applied
		{main.media, main.scale},
		{m.duration, m.scale},
	} {
		if d.units > 0 && d.scale > 0 {
			return ratio(d.units, d.scale)
		}
	}
	return 0
}
