package sample

import (
	"bytes"
	"encoding/binary"
	"io"
)

const (
	// paddingChunk is the largest data of an ancillary PNG chunk here. All full chunks are
	// equal, so one is kept in memory and repeated.
	paddingChunk = 1 << 20
	chunkFrame   = 12 // length, kind and checksum
	pngEnd       = 12 // the IEND chunk
)

// Padded returns the file grown to size bytes. It stays valid: an MP4 gets a free box at its
// end, and a PNG ancillary chunks before its end. A longer file stays as it is. If the growth is
// too small for a box or a chunk, Padded adds the smallest one. Its memory does not depend on
// size.
func Padded(file []byte, size int64) *io.SectionReader {
	missing := size - int64(len(file))
	var s sections
	switch {
	case missing <= 0:
		s.add(int64(len(file)), bytes.NewReader(file))
	case bytes.HasPrefix(file, []byte("\x89PNG")):
		s.addBytes(file[:len(file)-pngEnd])
		missing = max(missing, chunkFrame)
		full := chunk("paDd", make([]byte, paddingChunk))
		whole := missing / int64(len(full))
		rest := missing - whole*int64(len(full))
		if rest > 0 && rest < chunkFrame && whole > 0 {
			// The rest is too small for a chunk, so it is joined with a full one.
			whole--
			rest += int64(len(full))
		}
		s.add(whole*int64(len(full)), repeated(full))
		if rest > 0 {
			s.addBytes(chunk("paDd", make([]byte, rest-chunkFrame)))
		}
		s.addBytes(file[len(file)-pngEnd:])
	default:
		s.addBytes(file)
		header := append(be32(uint32(max(missing, 8))), "free"...)
		if missing > 1<<32-1 {
			header = binary.BigEndian.AppendUint64(append(be32(1), "free"...), uint64(missing))
		}
		s.addBytes(header)
		s.add(max(missing-int64(len(header)), 0), repeated(make([]byte, 64<<10)))
	}
	return io.NewSectionReader(&s, 0, s.size)
}

// Extended returns the sound grown to size bytes by zeros at its end, which players ignore. A
// longer sound stays as it is. Its memory does not depend on size.
func Extended(sound *io.SectionReader, size int64) *io.SectionReader {
	if size <= sound.Size() {
		return sound
	}
	var s sections
	s.add(sound.Size(), sound)
	s.add(size-sound.Size(), repeated(make([]byte, 64<<10)))
	return io.NewSectionReader(&s, 0, s.size)
}

// repeated is an endless file that repeats a block.
type repeated []byte

func (r repeated) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) {
		at := int((off + int64(n)) % int64(len(r)))
		n += copy(p[n:], r[at:])
	}
	return n, nil
}

// sections is a file that consists of parts.
type sections struct {
	parts []section
	size  int64
}

type section struct {
	start, end int64
	data       io.ReaderAt
}

func (s *sections) addBytes(b []byte) { s.add(int64(len(b)), bytes.NewReader(b)) }

func (s *sections) add(size int64, data io.ReaderAt) {
	s.parts = append(s.parts, section{s.size, s.size + size, data})
	s.size += size
}

// ReadAt implements io.ReaderAt.
func (s *sections) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for _, part := range s.parts {
		at := off + int64(n)
		if n == len(p) || at < part.start || at >= part.end {
			continue
		}
		want := p[n:min(len(p), n+int(min(part.end-at, int64(len(p)))))]
		got, err := part.data.ReadAt(want, at-part.start)
		n += got
		if got < len(want) {
			return n, err
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
