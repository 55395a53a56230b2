package mediainfo

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io"
	"io/fs"
	"strings"
)

// ClassArchive is the class of archives. Detect returns no format of it: the caller has to know that
// it expects an archive.
const ClassArchive Class = "archive"

// Zip is the format of an archive.
var Zip = Format{MIME: "application/zip", Class: ClassArchive, Ext: ".zip"}

// IsZip reports whether head begins a zip that is not empty.
func IsZip(head []byte) bool { return bytes.HasPrefix(head, []byte("PK\x03\x04")) }

// The limits of an archive.
const (
	MaxEntries = 64
	// archiveTail is the number of bytes kept of its end. They hold a directory of MaxEntries, with
	// names and notes of a kilobyte each.
	archiveTail = 128 << 10
	zipEndLen   = 22
)

const (
	noDirectory    Unreadable = "is damaged: the directory of the archive cannot be read"
	tooManyEntries Unreadable = "is an archive of too many files"
	badEntry       Unreadable = "is an archive with a file name that leads elsewhere"
)

// archive keeps the end of a zip, where its directory is.
type archive struct {
	tail []byte // the last bytes, up to twice what is needed
	size int64
}

func (a *archive) write(p []byte) {
	a.size += int64(len(p))
	for len(p) > 0 {
		if len(a.tail) >= 2*archiveTail {
			a.tail = append(a.tail[:0], a.tail[len(a.tail)-archiveTail:]...)
		}
		n := min(len(p), 2*archiveTail-len(a.tail))
		a.tail = append(a.tail, p[:n]...)
		p = p[n:]
	}
}

// fault returns what is wrong with a complete archive.
func (a *archive) fault() error {
	at := bytes.LastIndex(a.tail, []byte("PK\x05\x06"))
	if at < 0 || len(a.tail)-at < zipEndLen {
		return noDirectory
	}
	end := a.tail[at:]
	if zipEndLen+int(binary.LittleEndian.Uint16(end[20:])) != len(end) {
		return noDirectory
	}
	// The stated number is checked first, so that the reader allocates no more.
	if n := binary.LittleEndian.Uint16(end[10:]); n > MaxEntries {
		return tooManyEntries
	}
	// The directory is right before its end record. An archive over 4 GiB has both numbers in another
	// record, so that they do not add up here.
	size, offset := int64(binary.LittleEndian.Uint32(end[12:])), int64(binary.LittleEndian.Uint32(end[16:]))
	if size+offset != a.size-int64(len(end)) {
		return noDirectory
	}
	r, err := zip.NewReader(a, a.size)
	if err != nil || len(r.File) == 0 {
		return noDirectory
	}
	if len(r.File) > MaxEntries {
		return tooManyEntries
	}
	for _, f := range r.File {
		if !fs.ValidPath(strings.TrimSuffix(f.Name, "/")) || strings.ContainsAny(f.Name, "\\:\x00") {
			return badEntry
		}
	}
	return nil
}

// ReadAt reads from the kept end.
func (a *archive) ReadAt(p []byte, off int64) (int, error) {
	at := off - (a.size - int64(len(a.tail)))
	if at < 0 {
		return 0, io.ErrUnexpectedEOF
	}
	if at >= int64(len(a.tail)) {
		return 0, io.EOF
	}
	n := copy(p, a.tail[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
