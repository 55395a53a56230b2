package mediainfo

// tagged is audio that was detected as MP3, perhaps only by its tag. AAC may have the same tag, so
// tagged tries both.
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
