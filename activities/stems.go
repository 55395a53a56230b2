package activities

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

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/mediainfo"
)

// stems are tracks of a song that become one zip, from the vendor's servers into
// the bucket without being held. An archive that the vendor made itself is
// passed on.
type stems struct {
	parts    []stem
	modified time.Time // of all, so that a repetition makes the same bytes
	err      error     // why a part cannot be had; set before the stream ends
	failed   int       // which one
}

type stem struct {
	name  string
	index int // among all
	open  Opener
}

func (f *files) firstStem() int {
	return slices.IndexFunc(f.media, func(m mediagate.Media) bool { return m.Role == mediagate.RoleStem })
}

// archive stores the stems as one main file, at the position of the first. It is
// made anew without a stem that turns out to be lost, as long as there is another.
func (f *files) archive(ctx context.Context, position int) (mediagate.Result, error) {
	s := &stems{modified: f.task.CreatedAt.UTC()}
	index := f.media[position].Index
	for _, m := range f.media {
		if m.Role == mediagate.RoleStem {
			s.parts = append(s.parts, stem{name: m.Name, index: len(s.parts), open: f.opener(f.channel, f.gone, f.row, m)})
			index = min(index, m.Index)
		}
	}
	for {
		f.copied.begin(position)
		result, err := f.Bucket.Mirror(ctx, ResultKey(f.task.ID, f.row.N, position), s.open, Limits{
			MaxBytes: f.task.Plan.MaxBytes, Media: string(mediainfo.ClassArchive), Owner: f.row.Provider, Progress: f.copied.bytes.Store,
		})
		if err != nil && s.err != nil {
			err = s.err // the bucket only saw it end
		}
		if err == nil || s.err == nil || len(s.parts) == 1 || ctx.Err() != nil || !f.lost(err) {
			result.Role, result.Index = mediagate.RoleMain, index
			return result, err
		}
		f.Logger.WarnContext(ctx, "a stem is left out", "task", f.task.ID, "attempt", f.row.N, "index", s.parts[s.failed].index, "error", err)
		s.parts, s.err = slices.Delete(s.parts, s.failed, s.failed+1), nil
	}
}

// open opens the first part, which may be the whole archive, and makes the
// archive of it and the others.
func (s *stems) open(ctx context.Context) (io.ReadCloser, int64, error) {
	first, err := s.openPart(ctx, 0)
	if err != nil {
		s.err, s.failed = err, 0
		return nil, 0, err
	}
	if len(s.parts) == 1 && mediainfo.IsZip(first.head) {
		return &packed{part: first, stems: s}, first.length, nil
	}
	return makeFile(ctx, func(ctx context.Context, w *bufio.Writer) error {
		defer context.AfterFunc(ctx, first.hangUp)()
		err := s.write(ctx, w, first)
		if ctx.Err() == nil { // else nobody wants it any more: no part is to blame
			s.err = err
		}
		return err
	}), -1, nil
}

// packed is an archive as the vendor made it.
type packed struct {
	*part
	stems *stems
}

func (p *packed) Read(b []byte) (int, error) {
	n, err := p.part.Read(b)
	if p.from.err != nil {
		p.stems.err = brokenOff(p.from.err)
	}
	return n, err
}

// part is one stem on its way.
type part struct {
	from   *source
	whole  io.Reader // from its beginning
	head   []byte
	length int64
	hangUp context.CancelFunc
}

// Read reads the file from its beginning.
func (p *part) Read(b []byte) (int, error) { return p.whole.Read(b) }

// Close hangs up.
func (p *part) Close() error {
	err := p.from.Close()
	p.hangUp()
	return err
}

// openPart opens a stem and reads as much of it as tells what it is.
func (s *stems) openPart(ctx context.Context, i int) (*part, error) {
	ctx, hangUp := context.WithCancel(ctx)
	body, length, err := s.parts[i].open(ctx)
	if err != nil {
		hangUp()
		return nil, err
	}
	p := &part{from: newSource(body, length/2, hangUp), length: length, hangUp: hangUp}
	head := make([]byte, mediainfo.SniffLen)
	n, err := io.ReadFull(p.from, head)
	if p.from.err != nil {
		_ = p.Close()
		return nil, brokenOff(p.from.err)
	}
	if n == 0 {
		_ = p.Close()
		return nil, unusable("a stem is empty")
	}
	p.head = head[:n]
	p.whole = bytes.NewReader(p.head)
	if err == nil { // there may be more
		p.whole = io.MultiReader(p.whole, p.from)
	}
	return p, nil
}

// write makes the archive: one part after the other, as they come. Sound is
// packed already, so its blocks are stored; sizes and checksums follow each.
func (s *stems) write(ctx context.Context, w *bufio.Writer, first *part) error {
	archive := zip.NewWriter(w)
	archive.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.NoCompression)
	})
	names := make(map[string]bool, len(s.parts))
	for i := range s.parts {
		s.failed = i
		p := first
		if i > 0 {
			var err error
			if p, err = s.openPart(ctx, i); err != nil {
				return err
			}
		}
		err := s.add(archive, p, i, names)
		_ = p.Close() // it was only read
		if err != nil {
			return err
		}
	}
	return archive.Close()
}

func (s *stems) add(archive *zip.Writer, p *part, i int, names map[string]bool) error {
	format, detected, ok := mediainfo.Detect(p.head)
	if !ok || format.Class != mediainfo.ClassAudio {
		return unusable("a stem is %s, not audio", detected)
	}
	// Deflate, of which readers that cannot go back know the end; a stored file has none.
	entry, err := archive.CreateHeader(&zip.FileHeader{
		Name: stemName(s.parts[i].name, s.parts[i].index, format.Ext, names), Method: zip.Deflate, Modified: s.modified,
	})
	if err != nil {
		return fmt.Errorf("begin a stem: %w", err)
	}
	probe := mediainfo.NewProbe(format)
	if _, err := io.Copy(io.MultiWriter(entry, probe), p.whole); p.from.err != nil {
		return brokenOff(errors.Join(p.from.err, err))
	} else if err != nil {
		return fmt.Errorf("store a stem: %w", err)
	}
	if fault := probe.Fault(); fault != nil {
		return unusable("a stem %s", fault)
	}
	return nil
}

// longestName is where the name of a stem is cut, in runes.
const longestName = 64

// stemName is the name of a file in the archive: no folder, nothing that a
// system takes for something else, and no other's, whatever the case.
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
