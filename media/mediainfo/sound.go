package mediainfo

// sound measures an audio file while it is copied. An implementation keeps at most a header, and uses
// stated sizes only to skip bytes.
type sound interface {
	write(p []byte)
	seconds() float64 // 0: unknown
	// playable reports whether a completely written file has a valid header and sound after it.
	playable() bool
	// known reports whether seconds is final.
	known() bool
}

// newSound returns the sound of a format, nil for a format whose length cannot be measured.
func newSound(mime string) sound {
	switch mime {
	case mimeMP3:
		return &tagged{mpeg: newMPEG(), adts: newADTS()}
	case mimeAAC:
		return newADTS()
	case mimeWAV:
		return new(waveScanner)
	case mimeFLAC:
		return new(flacScanner)
	}
	return nil
}

// collect moves bytes from p to buf until buf has want bytes, and returns the rest of p.
func collect(buf *[]byte, want int, p []byte) []byte {
	n := min(want-len(*buf), len(p))
	*buf = append(*buf, p[:n]...)
	return p[n:]
}

// pass skips up to skip bytes of p, reduces skip, and returns the rest of p.
func pass(skip *uint64, p []byte) []byte {
	n := min(*skip, uint64(len(p)))
	*skip -= n
	return p[n:]
}

// ratio returns units in seconds, at rate units a second; 0 for a rate of 0.
func ratio(units uint64, rate uint32) float64 {
	if rate == 0 {
		return 0
	}
	return float64(units) / float64(rate)
}
