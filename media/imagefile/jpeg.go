package imagefile

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The markers of a JPEG.
const (
	markTEM   = 0x01
	markSOF0  = 0xc0 // the first of sixteen values, of which three are other markers
	markDHT   = 0xc4
	markJPG   = 0xc8
	markDAC   = 0xcc
	markSOF15 = 0xcf
	markRST0  = 0xd0
	markRST7  = 0xd7
	markEOI   = 0xd9
	markSOS   = 0xda
	markDQT   = 0xdb
	markDNL   = 0xdc
	markDRI   = 0xdd
	markDHP   = 0xde
	markEXP   = 0xdf
	markAPP0  = 0xe0
	markAPP1  = 0xe1
	markAPP2  = 0xe2
	markAPP14 = 0xee
	markAPP15 = 0xef
	markCOM   = 0xfe
)

// longestTable is the maximum length of each segment with tables or numbers: all possible tables,
// once each. A longer segment hides something else.
var longestTable = map[byte]int64{
	markDHT: 8 * (1 + 16 + 256), markDAC: 8 * 2, markDQT: 4 * (1 + 2*64), markDNL: 2, markDRI: 2, markEXP: 1,
}

// maxScans limits how often a decoder goes over all pixels. A scan of a progressive picture may be
// only a few bytes long.
const maxScans = 100

// isFrame reports whether a marker begins the header of a frame: SOF0 to SOF15, of every coding.
func isFrame(mark byte) bool {
	return mark >= markSOF0 && mark <= markSOF15 && mark != markDHT && mark != markJPG && mark != markDAC
}

// JPEGSides reads a JPEG up to the header with its size and returns the size unchecked. A JPEG that
// ends before the header is io.ErrUnexpectedEOF.
func JPEGSides(r io.Reader) (width, height int, err error) {
	c := &copier{r: bufio.NewReader(r), w: bufio.NewWriter(io.Discard), sidesOnly: true}
	err = c.jpeg()
	if c.info.Width > 0 && c.info.Height > 0 {
		return c.info.Width, c.info.Height, nil
	}
	if errors.Is(err, errCut) {
		err = io.ErrUnexpectedEOF
	}
	return 0, 0, err
}

// jpeg copies the segments up to the end of the picture. Cameras append gain maps, films and more
// pictures, which jpeg does not read.
func (c *copier) jpeg() error {
	if err := c.pass(2); err != nil { // SOI, as Detect saw
		return err
	}
	var scans int
	var profile int64
	var layered bool // several frames make up one picture; DHP has its size
	for mark := byte(0); ; {
		if mark == 0 {
			var err error
			if mark, err = c.marker(); err != nil {
				return err
			}
		}
		if mark == markEOI {
			if c.info.Width == 0 || scans == 0 {
				return errNoPixels
			}
			return c.write(0xff, markEOI)
		}
		head, err := c.next(2)
		if err != nil {
			return err
		}
		length := int64(binary.BigEndian.Uint16(head)) - 2
		if length < 0 {
			return damaged("a segment has no valid length")
		}
		segment := mark
		mark = 0
		switch {
		case segment == markDHP, isFrame(segment):
			err = c.jpegFrame(segment, length, layered)
			layered = layered || segment == markDHP
		case segment == markSOS:
			if scans++; scans > maxScans {
				return Unusable(fmt.Sprintf("has more than %d scans", maxScans))
			}
			if c.info.Width == 0 {
				return damaged("its pixels come before their header")
			}
			if err = c.segment(segment, length); err == nil {
				mark, err = c.jpegScan()
			}
		case longestTable[segment] != 0:
			if length > longestTable[segment] {
				return damaged("the segment %02X is longer than any", segment)
			}
			err = c.segment(segment, length)
		case segment == markCOM, segment >= markAPP0 && segment <= markAPP15:
			err = c.jpegApp(segment, length, &profile)
		default:
			err = damaged("the marker %02X is misplaced, or not known", segment)
		}
		if err != nil || c.sidesOnly && c.info.Width > 0 {
			return err
		}
	}
}

// maxBetween limits the bytes skipped before a marker.
const maxBetween = 64 << 10

// marker reads the next marker that has a segment. It skips the bytes before it, as all readers do:
// fill bytes, bytes outside segments, and markers without a segment.
func (c *copier) marker() (byte, error) {
	var before byte
	for range maxBetween {
		b, err := c.next(1)
		if err != nil {
			return 0, err
		}
		mark := b[0]
		if before == 0xff && mark != 0 && mark != 0xff && mark != markTEM && (mark < markRST0 || mark > markRST7) {
			return mark, nil
		}
		before = mark
	}
	return 0, damaged("there is no marker where one must be")
}

// segment copies a segment whose marker and length were read.
func (c *copier) segment(mark byte, length int64) error {
	if err := c.segmentHead(mark, length); err != nil {
		return err
	}
	return c.pass(length)
}

func (c *copier) segmentHead(mark byte, length int64) error {
	return c.write(binary.BigEndian.AppendUint16([]byte{0xff, mark}, uint16(length+2))...)
}

// jpegFrame copies the header of a frame, or of all layers (DHP). A layer is at most
// as large as that header says.
func (c *copier) jpegFrame(mark byte, length int64, layer bool) error {
	if c.info.Width != 0 && (!layer || mark == markDHP) {
		return damaged("it has two headers")
	}
	if length < 6 {
		return errShort
	}
	b, err := c.next(6)
	if err != nil {
		return err
	}
	if bits, parts := b[0], int64(b[5]); bits < 2 || bits > 16 || parts < 1 || length != 6+3*parts {
		return damaged("its header holds values that no JPEG has")
	}
	width, height := int(binary.BigEndian.Uint16(b[3:])), int(binary.BigEndian.Uint16(b[1:]))
	switch {
	case !layer:
		err = c.setSize(width, height)
	case width > c.info.Width || height > c.info.Height:
		err = damaged("a layer is larger than the image")
	}
	if err != nil {
		return err
	}
	if err := c.segmentHead(mark, length); err != nil {
		return err
	}
	if err := c.write(b...); err != nil {
		return err
	}
	return c.pass(length - 6)
}

// jpegScan copies compressed pixels up to the next marker, which it returns.
func (c *copier) jpegScan() (byte, error) {
	for {
		data, err := c.r.ReadSlice(0xff)
		full := errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !full {
			return 0, cut(err)
		}
		if full {
			if err := c.write(data...); err != nil {
				return 0, err
			}
			continue
		}
		if err := c.write(data[:len(data)-1]...); err != nil {
			return 0, err
		}
		mark := byte(0xff)
		for mark == 0xff { // fill bytes
			if mark, err = c.r.ReadByte(); err != nil {
				return 0, cut(err)
			}
		}
		if mark != 0 && (mark < markRST0 || mark > markRST7) {
			return mark, nil
		}
		if err := c.write(0xff, mark); err != nil {
			return 0, err
		}
	}
}

// The beginnings of what applications put into a file.
var (
	appJFIF    = []byte("JFIF\x00")
	appEXIF    = []byte("Exif\x00\x00")
	appProfile = []byte("ICC_PROFILE\x00")
	appAdobe   = []byte("Adobe")
)

// jpegApp keeps of what applications and people have added the part that
// changes how the picture looks.
func (c *copier) jpegApp(mark byte, length int64, profile *int64) error {
	const longest = 14 // of what is looked at
	head, err := c.r.Peek(int(min(length, longest)))
	if err != nil {
		return cut(err)
	}
	switch {
	case mark == markAPP0 && bytes.HasPrefix(head, appJFIF) && length >= 14:
		jfif := bytes.Clone(head[:14])
		jfif[12], jfif[13] = 0, 0 // no preview
		if err := c.segmentHead(mark, 14); err != nil {
			return err
		}
		if err := c.write(jfif...); err != nil {
			return err
		}
	case mark == markAPP14 && bytes.HasPrefix(head, appAdobe) && length >= 12:
		if err := c.segmentHead(mark, 12); err != nil {
			return err
		}
		if err := c.write(head[:12]...); err != nil {
			return err
		}
	case mark == markAPP2 && bytes.HasPrefix(head, appProfile):
		if *profile += length; *profile > maxProfile {
			return errProfile
		}
		return c.segment(mark, length)
	case mark == markAPP1 && bytes.HasPrefix(head, appEXIF):
		return c.jpegEXIF(length)
	}
	return c.drop(length)
}

// jpegEXIF writes a segment with the orientation in place of the whole.
func (c *copier) jpegEXIF(length int64) error {
	before := c.orientation
	if err := c.drop(int64(len(appEXIF))); err != nil {
		return err
	}
	if err := c.readOrientation(length - int64(len(appEXIF))); err != nil {
		return err
	}
	if c.orientation == before {
		return nil
	}
	bare := append(bytes.Clone(appEXIF), bareEXIF(c.orientation)...)
	if err := c.segmentHead(markAPP1, int64(len(bare))); err != nil {
		return err
	}
	return c.write(bare...)
}
