package minimax

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// The bounds of a frame of the first generation.
const (
	frameBytes = 20 << 20 // a frame is smaller
	frameSide  = 300      // the short side is longer
)

var imageTypes = []string{"image/jpeg", "image/jpg", "image/png", "image/webp"}

// content reads a field that is a URL or a data URI of one of the types. What
// a URL leads to is not looked at: then, as after a broken rule, ok is false.
func content(in *kernel.Object, name string, types []string) (raw []byte, mimeType string, ok bool) {
	value := in.Text(name)
	if kernel.IsLink(value) || in.Err() != nil {
		return nil, "", false
	}
	raw, mimeType, err := kernel.ReadData(value, types)
	if err != nil {
		in.Fail(name, "%s", err)
		return nil, "", false
	}
	return raw, mimeType, true
}

// frame checks a picture of the first generation.
func frame(in *kernel.Object, name string) (kernel.Picture, bool) {
	raw, _, ok := content(in, name, imageTypes)
	if !ok {
		return kernel.Picture{}, false
	}
	p, ok := kernel.ReadPicture(raw)
	switch {
	case len(raw) >= frameBytes:
		in.Fail(name, "must be smaller than %d bytes", frameBytes)
	case !ok:
		in.Fail(name, "must be a JPEG, PNG or WebP picture")
	case min(p.Width, p.Height) <= frameSide:
		in.Fail(name, "must have more than %d pixels on the short side", frameSide)
	case 5*p.Width < 2*p.Height || 5*p.Height < 2*p.Width:
		in.Fail(name, "must have a ratio from 2:5 to 5:2")
	}
	return p, ok
}

// length is how long an MP4, QuickTime or WAV file plays, as its head says.
func length(raw []byte) (time.Duration, bool) {
	if len(raw) >= 12 && string(raw[:4]) == "RIFF" && string(raw[8:12]) == "WAVE" {
		return wavLength(raw)
	}
	movie, ok := child(raw, "moov")
	if !ok {
		return 0, false
	}
	head, ok := child(movie, "mvhd")
	if !ok || len(head) < 20 {
		return 0, false
	}
	scale, units := uint64(binary.BigEndian.Uint32(head[12:])), uint64(binary.BigEndian.Uint32(head[16:]))
	if head[0] == 1 { // times of 64 bits
		if len(head) < 32 {
			return 0, false
		}
		scale, units = uint64(binary.BigEndian.Uint32(head[20:])), binary.BigEndian.Uint64(head[24:])
	}
	if scale == 0 || units > 1<<40 {
		return 0, false
	}
	return time.Duration(float64(units) / float64(scale) * float64(time.Second)), true
}

// child is the content of the first box of the kind.
func child(boxes []byte, kind string) ([]byte, bool) {
	for len(boxes) >= 8 {
		size, head := uint64(binary.BigEndian.Uint32(boxes)), uint64(8)
		if size == 1 && len(boxes) >= 16 {
			size, head = binary.BigEndian.Uint64(boxes[8:]), 16
		}
		if size == 0 {
			size = uint64(len(boxes))
		}
		if size < head || size > uint64(len(boxes)) {
			return nil, false
		}
		if string(boxes[4:8]) == kind {
			return boxes[head:size], true
		}
		boxes = boxes[size:]
	}
	return nil, false
}

// wavLength is the data's size by the bytes of a second.
func wavLength(raw []byte) (time.Duration, bool) {
	format := bytes.Index(raw, []byte("fmt "))
	data := bytes.Index(raw, []byte("data"))
	if format < 0 || data < 0 || len(raw) < format+20 || len(raw) < data+8 {
		return 0, false
	}
	second := binary.LittleEndian.Uint32(raw[format+16:])
	if second == 0 {
		return 0, false
	}
	size := binary.LittleEndian.Uint32(raw[data+4:])
	return time.Duration(float64(size) / float64(second) * float64(time.Second)), true
}
