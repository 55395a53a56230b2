package imagefile

import (
	"compress/zlib"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
)

const pngSignature = "\x89PNG\r\n\x1a\n"

// pngHints are the small optional chunks that change how a picture looks, with their minimum and
// maximum lengths. A chunk of another length hides text that no decoder reads.
var pngHints = map[string][2]int64{
	"tRNS": {1, 256}, "gAMA": {4, 4}, "cHRM": {32, 32}, "sRGB": {1, 1}, "sBIT": {1, 4}, "cICP": {4, 4}, "mDCV": {24, 24}, "cLLI": {8, 8},
	"pHYs": {9, 9}, "bKGD": {1, 6}, "acTL": {8, 8},
}

// pngDepths are the allowed depths of each colour type.
var pngDepths = map[byte][]byte{0: {1, 2, 4, 8, 16}, 2: {8, 16}, 3: {1, 2, 4, 8}, 4: {8, 16}, 6: {8, 16}}

// pngState records the chunks of a PNG so far.
type pngState struct {
	colour  byte
	begun   bool // the first chunk was read
	palette bool
	data    int  // chunks of pixels
	closed  bool // other chunks followed them
	frames  int
	once    map[string]bool // the chunks so far that a picture has once
}

// first reports whether a chunk is the first of its kind. Decoders skip the others.
func (s *pngState) first(kind string) bool {
	if s.once[kind] {
		return false
	}
	s.once[kind] = true
	return true
}

func (c *copier) png() error {
	if err := c.pass(int64(len(pngSignature))); err != nil {
		return err
	}
	s := pngState{once: map[string]bool{}}
	for {
		head, err := c.next(8)
		if err != nil {
			return err
		}
		length, kind := int64(binary.BigEndian.Uint32(head)), string(head[4:8])
		if length > 1<<31-1 || slices.ContainsFunc(head[4:8], notLetter) {
			return damaged("a chunk has no valid head")
		}
		if err := s.admit(kind, length); err != nil {
			return err
		}
		if err := c.pngChunk(&s, kind, length); err != nil {
			return err
		}
		if kind == "IEND" {
			return nil
		}
	}
}

func notLetter(b byte) bool { return (b < 'A' || b > 'Z') && (b < 'a' || b > 'z') }

// admit checks the order of the chunks.
func (s *pngState) admit(kind string, length int64) error {
	if s.begun != (kind != "IHDR") {
		return damaged("its header is not its first chunk, or there is another")
	}
	critical := kind[0] >= 'A' && kind[0] <= 'Z'
	s.closed = s.closed || s.data > 0 && kind != "IDAT"
	switch {
	case kind == "IHDR":
		s.begun = true
		if length != 13 {
			return damaged("its header has another length")
		}
	case kind == "PLTE":
		if s.palette || s.data > 0 || length == 0 || length%3 != 0 || length > 3*256 {
			return damaged("its palette is misplaced, or of another length")
		}
		s.palette = true
	case kind == "IDAT":
		if s.closed || s.colour == 3 && !s.palette {
			return damaged("its pixels are interrupted, or come before their palette")
		}
		s.data++
	case kind == "IEND":
		if length != 0 {
			return damaged("its end has a length")
		}
		if s.data == 0 {
			return errNoPixels
		}
	case critical:
		return damaged("the chunk %s is not known", kind)
	}
	return nil
}

// pngChunk copies or skips a chunk whose head was read. It always checks the checksum.
func (c *copier) pngChunk(s *pngState, kind string, length int64) error {
	sum := crc32.NewIEEE()
	_, _ = sum.Write([]byte(kind)) // never fails
	critical := kind[0] >= 'A' && kind[0] <= 'Z'
	bounds, hint := pngHints[kind]
	whole := &chunk{r: io.TeeReader(io.LimitReader(c.r, length), sum), left: length}
	switch {
	case kind == "IHDR", kind == "fcTL":
		if err := c.pngHeader(s, kind, whole); err != nil {
			return err
		}
	case kind == "eXIf":
		if err := c.pngEXIF(whole); err != nil {
			return err
		}
	case kind == "iCCP" && s.first(kind):
		if err := c.pngProfile(whole); err != nil {
			return err
		}
	case critical, kind == "fdAT" && s.frames > 0 && s.once["acTL"],
		hint && length >= bounds[0] && length <= bounds[1] && s.first(kind):
		if err := c.pngHead(kind, length); err != nil {
			return err
		}
		if err := whole.copy(c.w); err != nil {
			return err
		}
	default:
		if err := whole.copy(io.Discard); err != nil {
			return err
		}
	}
	stated, err := c.next(4)
	if err != nil {
		return err
	}
	if binary.BigEndian.Uint32(stated) != sum.Sum32() {
		return damaged("the checksum of a chunk is wrong")
	}
	if whole.kept {
		return c.write(stated...)
	}
	return nil
}

func (c *copier) pngHead(kind string, length int64) error {
	return c.write(append(binary.BigEndian.AppendUint32(nil, uint32(length)), kind...)...)
}

// pngHeader checks and copies the header of the picture or of a frame.
func (c *copier) pngHeader(s *pngState, kind string, whole *chunk) error {
	if kind == "fcTL" && whole.left != 26 {
		return damaged("the header of a frame has another length")
	}
	b := make([]byte, whole.left)
	if err := whole.readFull(b); err != nil {
		return err
	}
	whole.kept = true
	if err := c.pngHead(kind, int64(len(b))); err != nil {
		return err
	}
	if kind == "fcTL" {
		s.frames++
		number := func(at int) int { return int(min(binary.BigEndian.Uint32(b[at:]), 1<<30)) }
		if err := c.addFrame(s.frames, number(12), number(16), number(4), number(8)); err != nil {
			return err
		}
		return c.write(b...)
	}
	s.colour = b[9]
	if !slices.Contains(pngDepths[s.colour], b[8]) || b[10] != 0 || b[11] != 0 || b[12] > 1 {
		return damaged("its header holds values that no PNG has")
	}
	width, height := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	if err := c.setSize(int(min(width, 1<<30)), int(min(height, 1<<30))); err != nil {
		return err
	}
	return c.write(b...)
}

// pngEXIF replaces a chunk of EXIF with one that holds only the orientation.
func (c *copier) pngEXIF(whole *chunk) error {
	head := make([]byte, min(whole.left, exifHead))
	if err := whole.readFull(head); err != nil {
		return err
	}
	if err := whole.copy(io.Discard); err != nil {
		return err
	}
	o := orientationOf(head)
	if o <= upright || c.orientation != 0 {
		return nil
	}
	c.orientation = o
	bare := append([]byte("eXIf"), bareEXIF(o)...)
	if err := c.pngHead("", int64(len(bare)-4)); err != nil {
		return err
	}
	return c.write(binary.BigEndian.AppendUint32(bare, crc32.ChecksumIEEE(bare))...)
}

// maxProfileName is the maximum length of a profile's name, with the byte that ends it.
const maxProfileName = 80

// pngProfile copies a colour profile. It refuses one that unpacks to more than maxProfile.
func (c *copier) pngProfile(whole *chunk) error {
	if whole.left > maxProfile {
		return errProfile
	}
	if err := c.pngHead("iCCP", whole.left); err != nil {
		return err
	}
	whole.kept = true
	copied := &chunk{r: io.TeeReader(whole, c.w), left: whole.left}
	var one [1]byte
	for n := 0; ; n++ {
		if err := copied.readFull(one[:]); err != nil || n == maxProfileName {
			if n == maxProfileName || errors.Is(err, errShort) {
				err = damaged("its colour profile has no name")
			}
			return err
		}
		if one[0] == 0 {
			break
		}
	}
	if err := copied.readFull(one[:]); err != nil { // the compression method
		return err
	}
	unpacked, err := zlib.NewReader(copied)
	var size int64
	if err == nil {
		size, err = io.Copy(io.Discard, io.LimitReader(unpacked, maxProfile+1))
	}
	switch {
	case copied.failed != nil:
		return copied.failed
	case err != nil:
		return damaged("its colour profile cannot be unpacked")
	case size > maxProfile:
		return errProfile
	}
	return copied.copy(io.Discard)
}
