package mediainfo

// tagged is a sound that was taken for an MP3. A tag in front is all that some are
// known by, and AAC may have one as well.
type tagged struct{ mpeg, adts *frameScanner }

func (s *tagged) write(p []byte) {
	s.mpeg.write(p)
	if !s.mpeg.playable() {
		s.adts.write(p)
	}
}

func (s *tagged) seconds() float64 {
	if !s.mpeg.playable() && s.adts.playable() {
		return s.adts.seconds()
	}
	return s.mpeg.seconds()
}

func (s *tagged) known() bool { return false }

func (s *tagged) playable() bool { return s.mpeg.playable() || s.adts.playable() }
