package kernel

import (
	"bytes"
	"image"
	_ "image/jpeg" // the formats that vendors take
	_ "image/png"

	_ "golang.org/x/image/webp" // one more of them
)

// Picture is what the head of an image says.
type Picture struct {
	Format        string // "jpeg", "png" or "webp"
	Width, Height int
}

// ReadPicture reads it; the image itself is not decoded.
func ReadPicture(raw []byte) (p Picture, ok bool) {
	cfg, format, err := image.DecodeConfig(bytes.NewReader(raw))
	if err != nil || cfg.Width < 1 || cfg.Height < 1 {
		return Picture{}, false
	}
	return Picture{Format: format, Width: cfg.Width, Height: cfg.Height}, true
}
