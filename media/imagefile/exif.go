package imagefile

import (
	"bytes"
	"encoding/binary"
	"io"
)

// exifHead limits the bytes read of EXIF. The orientation is at its beginning.
const exifHead = 16 << 10

const (
	tagOrientation = 0x0112
	typeShort      = 3
)

// upright is the orientation of pictures that are not rotated.
const upright = 1

// readOrientation reads an EXIF block of n bytes, without the marker before it, and records its
// orientation. The first orientation of a file counts.
func (c *copier) readOrientation(n int64) error {
	head := make([]byte, min(n, exifHead))
	if _, err := io.ReadFull(c.r, head); err != nil {
		return cut(err)
	}
	if o := orientationOf(head); c.orientation == 0 && o > upright {
		c.orientation = o
	}
	return c.drop(n - int64(len(head)))
}

// orientationOf returns the orientation in the first directory of EXIF's TIFF; 0 if there is none,
// or if its value is invalid.
func orientationOf(tiff []byte) byte {
	if len(tiff) < 8 {
		return 0
	}
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(tiff, []byte("II*\x00")):
		order = binary.LittleEndian
	case bytes.HasPrefix(tiff, []byte("MM\x00*")):
		order = binary.BigEndian
	default:
		return 0
	}
	at := int64(order.Uint32(tiff[4:]))
	if at+2 > int64(len(tiff)) {
		return 0
	}
	entries := tiff[at+2:]
	for range order.Uint16(tiff[at:]) {
		if len(entries) < 12 {
			return 0
		}
		if order.Uint16(entries) == tagOrientation && order.Uint16(entries[2:]) == typeShort {
			if o := order.Uint16(entries[8:]); o >= 1 && o <= 8 {
				return byte(o)
			}
			return 0
		}
		entries = entries[12:]
	}
	return 0
}

// bareEXIF returns EXIF that holds only the orientation. It is empty EXIF for an orientation of 0.
func bareEXIF(orientation byte) []byte {
	b := []byte("II*\x00\x08\x00\x00\x00")
	if orientation == 0 {
		return append(b, 0, 0, 0, 0, 0, 0) // no entries, no further directory
	}
	b = append(b, 1, 0)
	b = binary.LittleEndian.AppendUint16(b, tagOrientation)
	b = binary.LittleEndian.AppendUint16(b, typeShort)
	b = binary.LittleEndian.AppendUint32(b, 1)
	b = append(b, orientation, 0, 0, 0)
	return append(b, 0, 0, 0, 0)
}
