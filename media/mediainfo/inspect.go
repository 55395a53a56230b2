package mediainfo

import (
	"bytes"
	"errors"
	"io"

	"github.com/mediagate/mediagate/media/imagefile"
)

// Facts are the format and the values of a file.
type Facts struct {
	Format Format
	Info
}

// Unreadable is the reason why a file cannot be used. The words follow the file's name.
type Unreadable string

// Error implements error.
func (u Unreadable) Error() string { return string(u) }

const (
	unknownFormat Unreadable = "is not an image, a video or a sound in a format that we know"
	unreadable    Unreadable = "is damaged, or not what it seems: its headers cannot be read"
	noMovie       Unreadable = "has no moov box: the video is damaged or incomplete"
	noPictures    Unreadable = "has no track of pictures"
	noLength      Unreadable = "has no length that could be: it is damaged or incomplete"
	noSound       Unreadable = "holds no sound that could be played"
)

// Inspect reads a file as far as it needs for the format, size and length:
//
//   - an image that imagefile knows to its end, and imagefile checks it;
//   - MP4 and MOV to the end of the movie box, or of the file if the samples are in fragments;
//   - audio to its end if its length has to be measured.
//
// It holds a few kilobytes. An error about the file is Unreadable; an error of the reader is returned
// as it is.
func Inspect(r io.Reader) (Facts, error) { return inspect(r, true) }

// Glance reads only the first bytes, which show the format.
func Glance(r io.Reader) (Facts, error) { return inspect(r, false) }

func inspect(r io.Reader, whole bool) (Facts, error) {
	src := &errReader{r: r}
	head, err := io.ReadAll(io.LimitReader(src, SniffLen))
	if err != nil {
		return Facts{}, err
	}
	format, _, ok := Detect(head)
	if !ok {
		return Facts{}, unknownFormat
	}
	f := Facts{Format: format}
	file := io.MultiReader(bytes.NewReader(head), src)
	switch format.MIME {
	case mimePNG, mimeJPEG, mimeGIF, mimeWebP:
		if whole {
			f.Info, err = inspectImage(file)
		}
	case mimeMP4, mimeMOV:
		if whole {
			f.Info, err = inspectMovie(file)
		}
	default:
		if whole && format.Class == ClassAudio {
			f.Info = inspectSound(format, file)
		}
	}
	if src.err != nil {
		return Facts{}, src.err
	}
	if err != nil {
		return Facts{}, err
	}
	return f, nil
}

func inspectImage(r io.Reader) (Info, error) {
	info, err := imagefile.Clean(io.Discard, r)
	if words, ok := errors.AsType[imagefile.Unusable](err); ok {
		return Info{}, Unreadable(words)
	}
	return Info{Width: info.Width, Height: info.Height}, err
}

func inspectMovie(r io.Reader) (Info, error) {
	p := &Probe{boxes: new(boxScanner)}
	p.readFrom(r)
	info := p.Info() // Info also closes the last track
	if err := p.boxes.unfit(false); err != nil {
		return Info{}, err
	}
	return info, nil
}

// inspectSound returns the length of a sound. It has no error: a sound of unknown length may still be
// playable.
func inspectSound(f Format, r io.Reader) Info {
	p := NewProbe(f)
	p.readFrom(r)
	return p.Info()
}

// readFrom writes the file to the probe until its Info is final or the file ends.
func (p *Probe) readFrom(r io.Reader) {
	piece := make([]byte, 32<<10)
	for !p.known() {
		n, err := r.Read(piece)
		_, _ = p.Write(piece[:n]) // never fails
		if err != nil {
			break
		}
	}
}

// errReader records the error that ended the file early.
type errReader struct {
	r   io.Reader
	err error
}

func (n *errReader) Read(p []byte) (int, error) {
	if n.err != nil {
		return 0, n.err
	}
	m, err := n.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		n.err = err
	}
	return m, err
}
