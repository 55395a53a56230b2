package mediainfo

import (
	"bytes"
	"errors"
	"io"

	"github.com/mediagate/mediagate/media/imagefile"
)

// Facts are what a file tells whoever means to use it.
type Facts struct {
	Format Format
	Info
}

// Unreadable is why a file cannot be used: the words follow the file's name.
type Unreadable string

// Error is the words.
func (u Unreadable) Error() string { return string(u) }

const (
	unknownFormat Unreadable = "is not an image, a video or a sound in a format that we know"
	unreadable    Unreadable = "is damaged, or not what it seems: its headers cannot be read"
	noMovie       Unreadable = "has no moov box: the video is damaged or incomplete"
	noPictures    Unreadable = "has no track of pictures"
	noLength      Unreadable = "has no length that could be: it is damaged or incomplete"
	noSound       Unreadable = "holds no sound that could be played"
)

// Inspect reads a file no further than it takes to tell its format, and the
// sides and the length of the formats whose headers we read: an image that
// imagefile knows up to its end, by whose verdict it is good or not, MP4 and MOV up to the end of the movie box, or of the file where the
// samples are in fragments, a sound to its end where its length is what is there. It holds a few
// kilobytes of it. Where the file is at fault the error
// is Unreadable; an error of the reader's comes back as it is.
func Inspect(r io.Reader) (Facts, error) { return inspect(r, true) }

// Glance reads no more than the first bytes, which tell the format.
func Glance(r io.Reader) (Facts, error) { return inspect(r, false) }

func inspect(r io.Reader, whole bool) (Facts, error) {
	src := &noting{r: r}
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
	info := p.Info() // which ends the last track, too
	if err := p.boxes.unfit(false); err != nil {
		return Info{}, err
	}
	return info, nil
}

// inspectSound finds no fault in a sound: one whose length cannot be told may
// still be played.
func inspectSound(f Format, r io.Reader) Info {
	p := NewProbe(f)
	p.readFrom(r)
	return p.Info()
}

// readFrom feeds the probe until it knows all, or nothing more comes.
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

// noting remembers the error that ended the file early.
type noting struct {
	r   io.Reader
	err error
}

func (n *noting) Read(p []byte) (int, error) {
	if n.err != nil {
		return 0, n.err
	}
	m, err := n.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		n.err = err
	}
	return m, err
}
