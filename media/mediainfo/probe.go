package mediainfo

import "math"

// Info has the values of a file's headers. Zero means unknown.
type Info struct {
	Width    int
	Height   int
	Duration float64 // seconds
}

const (
	maxSide = 1 << 16
	// maxSeconds is the longest believable length: eleven days. Arithmetic on a larger, hostile value
	// might overflow.
	maxSeconds = 1e6
)

// Probe reads the headers of a file of a known format while it is copied. It is an io.Writer that
// never fails: a broken file leaves Info empty.
type Probe struct {
	boxes *boxScanner
	audio bool // the boxes are those of an audio file
	image *imageHead
	sound sound
	zip   *archive
}

// NewProbe returns a probe for a file of the format. Info stays empty for a format whose headers it
// cannot read.
func NewProbe(f Format) *Probe {
	switch f.MIME {
	case mimeMP4, mimeMOV:
		return &Probe{boxes: new(boxScanner)}
	case mimeM4A:
		return &Probe{boxes: new(boxScanner), audio: true}
	case mimePNG, mimeJPEG, mimeGIF, mimeWebP:
		return &Probe{image: &imageHead{mime: f.MIME}}
	}
	if f == Zip {
		return &Probe{zip: new(archive)}
	}
	return &Probe{sound: newSound(f.MIME)}
}

// Write reads the next bytes of the file and returns len(b).
func (p *Probe) Write(b []byte) (int, error) {
	switch {
	case p.boxes != nil:
		p.boxes.write(b)
	case p.image != nil:
		p.image.write(b)
	case p.sound != nil:
		p.sound.write(b)
	case p.zip != nil:
		p.zip.write(b)
	}
	return len(b), nil
}

// Fault returns an Unreadable if a completely written file is useless. The first bytes of a format
// are easy to fake, so Fault requires valid headers of the formats whose headers Probe reads. It
// returns nil for other formats and unknown variants.
func (p *Probe) Fault() error {
	switch {
	case p.boxes != nil:
		return p.boxes.fault(p.audio)
	case p.image != nil:
		return p.image.fault()
	case p.sound != nil && !p.sound.playable():
		return noSound
	case p.zip != nil:
		return p.zip.fault()
	default:
		return nil
	}
}

// known reports whether Info is final.
func (p *Probe) known() bool {
	switch {
	case p.boxes != nil:
		return p.boxes.done
	case p.sound != nil:
		return p.sound.known()
	default:
		return true
	}
}

// Info returns the values found in the bytes so far.
func (p *Probe) Info() Info {
	var info Info
	switch {
	case p.boxes != nil:
		info = p.boxes.info()
	case p.image != nil:
		info = p.image.info()
	case p.sound != nil:
		info.Duration = p.sound.seconds()
	}
	if info.Width <= 0 || info.Height <= 0 || info.Width > maxSide || info.Height > maxSide {
		info.Width, info.Height = 0, 0
	}
	if !(info.Duration > 0 && info.Duration <= maxSeconds) {
		info.Duration = 0
	}
	info.Duration = math.Round(info.Duration*1000) / 1000
	return info
}
