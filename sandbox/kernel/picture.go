package kernel

import (
	"bytes"
	"encoding/base64"
	"errors"
	"image"
	_ "image/jpeg" // the formats that vendors take
	_ "image/png"
	"strconv"
	"strings"

	_ "golang.org/x/image/webp" // another format that vendors take
)

// Picture is the format and size that an image's header states.
type Picture struct {
	Format        string // "jpeg", "png" or "webp"
	Width, Height int
}

// InlinePicture reads the header of an image in base64, which may be a data URI. It also returns
// the size of the image in bytes. The pixels are not decoded.
func InlinePicture(text string) (p Picture, size int, err error) {
	if strings.HasPrefix(text, "data:") {
		_, text, _ = strings.Cut(text, ",")
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return p, 0, errors.New("base64 decoding failed")
	}
	config, format, err := image.DecodeConfig(bytes.NewReader(raw))
	if err != nil || config.Width < 1 || config.Height < 1 {
		return p, 0, errors.New("must be a picture")
	}
	return Picture{Format: format, Width: config.Width, Height: config.Height}, len(raw), nil
}

// Pixels returns the size of a video from its short side and its ratio. It rounds the long side
// up to an even number, which the codec demands.
func Pixels(short, width, height int) (int, int) {
	even := func(n int) int { return (n + 1) / 2 * 2 }
	if width >= height {
		return even(short * width / height), short
	}
	return short, even(short * height / width)
}

// Ratio parses a ratio such as 16:9.
func Ratio(text string) (width, height int) {
	w, h, _ := strings.Cut(text, ":")
	width, _ = strconv.Atoi(w)
	height, _ = strconv.Atoi(h)
	return width, height
}
