package mediainfo

import "math"

// Info is what a file says of itself. Zero means unknown.
type Info struct {
	Width    int
	Height   int
	Duration float64 // seconds
}

const (
	maxSide = 1 << 16
	// maxSeconds is where a stated length stops being believable: eleven
	// days. Beyond it, arithmetic on a hostile value might overflow.
	maxSeconds = 1e6
)

// Probe reads the headers of one file of a known format while it streams by.
// It is an io.Writer that never fails: a broken file only leaves Info empty.
type Probe struct {
	boxes *boxScanner
	audio bool // the boxes are of a sound
	image *imageHead
	sound sound
	zip   *archive
}

// NewProbe returns a probe for a file of the format. For a format whose
// headers it cannot read, Info stays empty.
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

// Write takes the next bytes of the file. It always takes all of them.
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

// Fault is what makes a file that has been written whole useless: an Unreadable,
// nil where nothing was found. First bytes are cheap to write, so a file whose
// headers we read has to have them. Of formats whose headers we do not read, and
// of variants that we do not know, nothing is said.
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

// known reports that what follows cannot change what Info returns.
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

// Info returns what the bytes so far told.
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
