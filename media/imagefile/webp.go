package imagefile

import "encoding/binary"

// webpState records the chunks of a WebP so far.
type webpState struct {
	extended bool // the file begins with a header of features
	moving   bool
	profile  bool
	images   int // still ones
	frames   int
}

// webp copies the chunks. The file begins with its size, so webp blanks invisible chunks instead of
// removing them.
func (c *copier) webp() error {
	head, err := c.next(12)
	if err != nil {
		return err
	}
	left := int64(binary.LittleEndian.Uint32(head[4:])) - 4
	if left < 0 || left%2 != 0 {
		return damaged("its length is not valid")
	}
	if err := c.write(head...); err != nil {
		return err
	}
	var s webpState
	for first := true; left > 0; first = false {
		kind, length, err := c.webpHead(&left)
		if err != nil {
			return err
		}
		if err := c.webpChunk(&s, first, kind, length); err != nil {
			return err
		}
	}
	if s.images+s.frames == 0 {
		return errNoPixels
	}
	return nil
}

// webpHead reads the head of a chunk and subtracts the chunk from left. The chunk, with the byte that
// makes its length even, must fit into left.
func (c *copier) webpHead(left *int64) (kind string, length int64, err error) {
	if *left < 8 {
		return "", 0, damaged("a chunk has no valid head")
	}
	head, err := c.next(8)
	if err != nil {
		return "", 0, err
	}
	length = int64(binary.LittleEndian.Uint32(head[4:]))
	if *left -= 8 + length + length%2; *left < 0 {
		return "", 0, damaged("a chunk is longer than what it is in")
	}
	return string(head[:4]), length, nil
}

func (c *copier) webpChunk(s *webpState, first bool, kind string, length int64) error {
	if first {
		s.extended = kind == "VP8X"
	}
	switch {
	case kind == "VP8X":
		if !first || length != 10 {
			return damaged("its header is misplaced, or of another length")
		}
		return c.webpFeatures(s)
	case kind == "VP8 ", kind == "VP8L":
		if s.images++; s.images > 1 || s.moving {
			return damaged("it holds a second image")
		}
		return c.webpPixels(kind, length, s.extended)
	case !s.extended:
		return damaged("a chunk is misplaced")
	case kind == "ANMF":
		if !s.moving {
			return damaged("it has a frame and does not move")
		}
		s.frames++
		return c.webpFrame(s.frames, length)
	case kind == "ALPH" && s.images == 0 && !s.moving, kind == "ANIM" && length == 6:
		return c.webpCopy(kind, length)
	case kind == "ICCP":
		if length > maxProfile || s.profile {
			return errProfile
		}
		s.profile = true
		return c.webpCopy(kind, length)
	case kind == "EXIF":
		return c.webpEXIF(length)
	case kind == "XMP ":
		return c.webpBlank(kind, ' ', length)
	default: // a kind that readers skip
		return c.webpBlank("VOID", 0, length)
	}
}

func (c *copier) webpStart(kind string, length int64) error {
	return c.write(binary.LittleEndian.AppendUint32([]byte(kind), uint32(length))...)
}

// webpPad reads the byte after a chunk of odd length and writes an empty one.
func (c *copier) webpPad(length int64) error {
	if length%2 == 0 {
		return nil
	}
	if err := c.drop(1); err != nil {
		return err
	}
	return c.write(0)
}

func (c *copier) webpCopy(kind string, length int64) error {
	if err := c.webpStart(kind, length); err != nil {
		return err
	}
	if err := c.pass(length); err != nil {
		return err
	}
	return c.webpPad(length)
}

func (c *copier) webpBlank(kind string, with byte, length int64) error {
	if err := c.webpStart(kind, length); err != nil {
		return err
	}
	if err := c.drop(length); err != nil {
		return err
	}
	if err := c.fill(with, length); err != nil {
		return err
	}
	return c.webpPad(length)
}

func (c *copier) webpEXIF(length int64) error {
	before := c.orientation
	n := length
	if head, err := c.r.Peek(int(min(length, int64(len(appEXIF))))); err != nil {
		return cut(err)
	} else if string(head) == string(appEXIF) { // some programs write it, as in a JPEG
		if err := c.drop(int64(len(appEXIF))); err != nil {
			return err
		}
		n -= int64(len(appEXIF))
	}
	if err := c.readOrientation(n); err != nil {
		return err
	}
	var kept byte
	if c.orientation != before {
		kept = c.orientation
	}
	bare := bareEXIF(kept)
	if int64(len(bare)) > length {
		bare = nil
	}
	if err := c.webpStart("EXIF", length); err != nil {
		return err
	}
	if err := c.write(bare...); err != nil {
		return err
	}
	if err := c.fill(0, length-int64(len(bare))); err != nil {
		return err
	}
	return c.webpPad(length)
}

// webpMoves is the feature flag of an animation.
const webpMoves = 0x02

func (c *copier) webpFeatures(s *webpState) error {
	b, err := c.next(10)
	if err != nil {
		return err
	}
	s.moving = b[0]&webpMoves != 0
	if err := c.setSize(number24(b[4:])+1, number24(b[7:])+1); err != nil {
		return err
	}
	if err := c.webpStart("VP8X", 10); err != nil {
		return err
	}
	return c.write(c.scratch[:10]...)
}

func number24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

// webpPixels checks the size of a still picture and copies it.
func (c *copier) webpPixels(kind string, length int64, stated bool) error {
	width, height, err := c.webpSides(kind, length)
	if err != nil {
		return err
	}
	if stated && (width != c.info.Width || height != c.info.Height) {
		return damaged("it states two sizes")
	}
	if !stated {
		if err := c.setSize(width, height); err != nil {
			return err
		}
	}
	return c.webpCopy(kind, length)
}

// webpSides reads the size from the beginning of compressed pixels.
func (c *copier) webpSides(kind string, length int64) (width, height int, err error) {
	head, err := c.r.Peek(int(min(length, 10)))
	switch {
	case err != nil:
		return 0, 0, cut(err)
	case kind == "VP8L" && len(head) >= 5 && head[0] == 0x2f:
		bits := binary.LittleEndian.Uint32(head[1:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1, nil
	case kind == "VP8 " && len(head) >= 10 && head[0]&1 == 0 && string(head[3:6]) == "\x9d\x01\x2a":
		return int(binary.LittleEndian.Uint16(head[6:]) & 0x3fff), int(binary.LittleEndian.Uint16(head[8:]) & 0x3fff), nil
	}
	return 0, 0, damaged("its pixels have no valid head")
}

// webpFrame copies a frame of an animation.
func (c *copier) webpFrame(n int, length int64) error {
	const header = 16
	if length < header {
		return errShort
	}
	b, err := c.next(header)
	if err != nil {
		return err
	}
	width, height := number24(b[6:])+1, number24(b[9:])+1
	if err := c.addFrame(n, 2*number24(b), 2*number24(b[3:]), width, height); err != nil {
		return err
	}
	if err := c.webpStart("ANMF", length); err != nil {
		return err
	}
	if err := c.write(c.scratch[:header]...); err != nil {
		return err
	}
	images := 0
	for left := length - header; left > 0; {
		kind, size, err := c.webpHead(&left)
		if err != nil {
			return err
		}
		switch {
		case kind == "ALPH" && images == 0:
			err = c.webpCopy(kind, size)
		case kind == "VP8 " || kind == "VP8L":
			if images++; images > 1 {
				return damaged("a frame holds two images")
			}
			var w, h int
			if w, h, err = c.webpSides(kind, size); err == nil && (w != width || h != height) {
				err = damaged("a frame states two sizes")
			}
			if err == nil {
				err = c.webpCopy(kind, size)
			}
		default:
			err = c.webpBlank("VOID", 0, size)
		}
		if err != nil {
			return err
		}
	}
	if images == 0 {
		return errNoPixels
	}
	return c.webpPad(length)
}
