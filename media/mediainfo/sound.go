package mediainfo

// sound finds the length of a sound while its bytes stream by. None of them
// keeps more than a header, and none believes a size further than to step over
// it.
type sound interface {
	write(p []byte)
	seconds() float64 // 0: unknown
	// playable says of a file that has been written whole that its header was read
	// and sound follows it.
	playable() bool
	// known says that nothing that follows can change what seconds tells.
	known() bool
}

// newSound is what reads the length of a sound of the format, nil where
// nothing does.
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

// collect takes of p what buf lacks to hold want bytes, and returns the rest.
func collect(buf *[]byte, want int, p []byte) []byte {
	n := min(want-len(*buf), len(p))
	*buf = append(*buf, p[:n]...)
	return p[n:]
}

// pass steps over as much of p as is to be skipped, and returns the rest.
func pass(skip *uint64, p []byte) []byte {
	n := min(*skip, uint64(len(p)))
	*skip -= n
	return p[n:]
}

// ratio is a length in seconds, of units of which there are rate in one.
func ratio(units uint64, rate uint32) float64 {
	if rate == 0 {
		return 0
	}
	return float64(units) / float64(rate)
}
