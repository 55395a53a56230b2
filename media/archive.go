package media

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/mediagate/mediagate/media/mediainfo"
)

// Archive packs stems, the tracks of a song, into one zip while they arrive. It passes on an
// archive that the vendor made itself.
type Archive struct {
	Stems    []Stem
	Modified time.Time // of all entries, so that a repetition makes the same bytes
	Half     func()    // see Source.Half; may be nil

	err    error // why a stem failed; set before the archive ends
	failed int   // index of that stem
}

// Stem is one track.
type Stem struct {
	Name  string
	Index int // among all stems of the task
	Open  Open
}

// Fault returns the stem that ended the archive early and its error. The error is nil if the
// archive is complete or its reader closed it.
func (a *Archive) Fault() (Stem, error) {
	if a.err == nil {
		return Stem{}, nil
	}
	return a.Stems[a.failed], a.err
}

// LeaveOut removes the failed stem, so that the archive can be made again. It reports false if no
// stem would be left.
func (a *Archive) LeaveOut() bool {
	if len(a.Stems) == 1 {
		return false
	}
	a.Stems, a.err = slices.Delete(a.Stems, a.failed, a.failed+1), nil
	return true
}

// Open opens the first stem and returns the archive of all stems. If there is only one stem, and it
// is a zip, Open returns it as it is: it is the vendor's own archive.
func (a *Archive) Open(ctx context.Context) (io.ReadCloser, int64, error) {
	first, err := a.openPart(ctx, 0)
	if err != nil {
		a.err, a.failed = err, 0
		return nil, 0, err
	}
	if len(a.Stems) == 1 && mediainfo.IsZip(first.head) {
		return &packed{part: first, archive: a}, first.length, nil
	}
	return makeFile(ctx, func(ctx context.Context, w *bufio.Writer) error {
		defer context.AfterFunc(ctx, first.hangUp)()
		err := a.write(ctx, w, first)
		if ctx.Err() == nil { // otherwise the reader closed the archive: no stem failed
			a.err = err
		}
		return err
	}), -1, nil
}

// packed is an archive that the vendor made.
type packed struct {
	*part
	archive *Archive
}

// Read reads the archive.
func (p *packed) Read(b []byte) (int, error) {
	n, err := p.part.Read(b)
	if p.from.err != nil {
		p.archive.err = BrokenOff(p.from.err)
	}
	return n, err
}

// part is a stem that is being read.
type part struct {
	from   *Source
	whole  io.Reader // from its beginning
	head   []byte
	length int64
	hangUp context.CancelFunc
}

// Read reads the file from its beginning.
func (p *part) Read(b []byte) (int, error) { return p.whole.Read(b) }

// Close closes the connection.
func (p *part) Close() error {
	err := p.from.Close()
	p.hangUp()
	return err
}

// openPart opens a stem and reads its first bytes, which show its format.
func (a *Archive) openPart(ctx context.Context, i int) (*part, error) {
	ctx, hangUp := context.WithCancel(ctx)
	body, length, err := a.Stems[i].Open(ctx)
	if err != nil {
		hangUp()
		return nil, err
	}
	p := &part{from: NewSource(body, hangUp), length: length, hangUp: hangUp}
	p.from.Half(length, a.Half)
	head := make([]byte, mediainfo.SniffLen)
	n, err := io.ReadFull(p.from, head)
	if p.from.err != nil {
		_ = p.Close()
		return nil, BrokenOff(p.from.err)
	}
	if n == 0 {
		_ = p.Close()
		return nil, Useless("a stem is empty")
	}
	p.head = head[:n]
	p.whole = bytes.NewReader(p.head)
	if err == nil { // there may be more
		p.whole = io.MultiReader(p.whole, p.from)
	}
	return p, nil
}

// write writes the archive, one stem after the other. Audio is compressed already, so the archive
// does not compress it again. Size and checksum follow each stem.
func (a *Archive) write(ctx context.Context, w *bufio.Writer, first *part) error {
	archive := zip.NewWriter(w)
	archive.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.NoCompression)
	})
	names := make(map[string]bool, len(a.Stems))
	for i := range a.Stems {
		a.failed = i
		p := first
		if i > 0 {
			var err error
			if p, err = a.openPart(ctx, i); err != nil {
				return err
			}
		}
		err := a.add(archive, p, i, names)
		_ = p.Close() // it was only read
		if err != nil {
			return err
		}
	}
	return archive.Close()
}

func (a *Archive) add(archive *zip.Writer, p *part, i int, names map[string]bool) error {
	format, detected, ok := mediainfo.Detect(p.head)
	if !ok || format.Class != mediainfo.ClassAudio {
		return Useless("a stem is %s, not audio", detected)
	}
	// Deflate marks its own end, so that streaming readers find it; a stored entry does not.
	entry, err := archive.CreateHeader(&zip.FileHeader{
		Name: stemName(a.Stems[i].Name, a.Stems[i].Index, format.Ext, names), Method: zip.Deflate, Modified: a.Modified,
	})
	if err != nil {
		return fmt.Errorf("begin a stem: %w", err)
	}
	probe := mediainfo.NewProbe(format)
	if _, err := io.Copy(io.MultiWriter(entry, probe), p.whole); p.from.err != nil {
		return BrokenOff(errors.Join(p.from.err, err))
	} else if err != nil {
		return fmt.Errorf("store a stem: %w", err)
	}
	if fault := probe.Fault(); fault != nil {
		return Useless("a stem %s", fault)
	}
	return nil
}

// longestName is the maximum length of a stem's name in runes.
const longestName = 64

// stemName returns the name of a stem's file in the archive. It has no folder and no special
// characters, and differs from all other names even where case is ignored.
func stemName(name string, i int, ext string, taken map[string]bool) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == ' ', r == '-', r == '_', r == '(', r == ')':
			return r
		}
		return '_'
	}, strings.ToValidUTF8(name, "_"))
	if runes := []rune(name); len(runes) > longestName {
		name = string(runes[:longestName])
	}
	if name = strings.TrimSpace(name); strings.Trim(name, "_ ") == "" {
		name = fmt.Sprintf("stem-%d", i+1)
	}
	unique := name + ext
	for n := 2; taken[strings.ToLower(unique)]; n++ {
		unique = fmt.Sprintf("%s-%d%s", name, n, ext)
	}
	taken[strings.ToLower(unique)] = true
	return unique
}
