package imagefile_test

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
)

// secret stands in whatever has to go.
const secret = "<script>alert('51.5N 0.1W')</script>"

func picture(width, height int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for x := range width {
		for y := range height {
			m.Set(x, y, color.RGBA{byte(x * 3), byte(y * 5), byte(x * y), 255})
		}
	}
	return m
}

func encoded(tb testing.TB, format string, width, height int) string {
	tb.Helper()
	var b bytes.Buffer
	var err error
	switch m := picture(width, height); format {
	case "png":
		err = png.Encode(&b, m)
	case "jpeg":
		err = jpeg.Encode(&b, m, nil)
	case "gif":
		err = gif.Encode(&b, m, nil)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

// film is a GIF of that many frames.
func film(frames int) string {
	b := []byte("GIF89a\x02\x00\x02\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00")
	for range frames {
		b = append(b, "!\xf9\x04\x00\x05\x00\x00\x00,\x00\x00\x00\x00\x02\x00\x02\x00\x00\x02\x03\x84\x51\x05\x00"...)
	}
	return string(append(b, ';'))
}

func pngChunk(kind, data string) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	b = append(b, kind+data...)
	return string(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE([]byte(kind+data))))
}

const (
	pngStart = "\x89PNG\r\n\x1a\n"
	pngEnd   = "\x00\x00\x00\x00IEND\xaeB`\x82"
)

func pngHeader(width, height uint32) string {
	b := binary.BigEndian.AppendUint32(nil, width)
	return pngChunk("IHDR", string(append(binary.BigEndian.AppendUint32(b, height), 8, 6, 0, 0, 0)))
}

// withChunks puts chunks behind the header of a PNG.
func withChunks(file string, chunks ...string) string {
	const header = len(pngStart) + 25
	return file[:header] + strings.Join(chunks, "") + file[header:]
}

func packed(text string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

func segment(mark byte, data string) string {
	return "\xff" + string([]byte{mark}) + string(binary.BigEndian.AppendUint16(nil, uint16(len(data)+2))) + data
}

// withSegments puts segments behind the first marker of a JPEG.
func withSegments(file string, segments ...string) string {
	return file[:2] + strings.Join(segments, "") + file[2:]
}

// exif is a block with that orientation, between other facts.
func exif(order binary.AppendByteOrder, orientation uint16) string {
	b := []byte("II*\x00")
	if order == binary.AppendByteOrder(binary.BigEndian) {
		b = []byte("MM\x00*")
	}
	b = order.AppendUint32(b, 8)
	b = order.AppendUint16(b, 2)
	for _, entry := range [][2]uint16{{0x010f, 7}, {0x0112, orientation}} {
		b = order.AppendUint16(order.AppendUint16(b, entry[0]), 3)
		b = order.AppendUint32(b, 1)
		b = append(order.AppendUint16(b, entry[1]), 0, 0)
	}
	return string(b) + "\x00\x00\x00\x00" + secret
}

func riff(kind, data string) string {
	b := string(binary.LittleEndian.AppendUint32([]byte(kind), uint32(len(data)))) + data
	if len(data)%2 != 0 {
		b += "\x00"
	}
	return b
}

func webp(chunks ...string) string { return riff("RIFF", "WEBP"+strings.Join(chunks, "")) }

func number24(n int) string { return string([]byte{byte(n), byte(n >> 8), byte(n >> 16)}) }

func features(flags byte, width, height int) string {
	return riff("VP8X", string([]byte{flags, 0, 0, 0})+number24(width-1)+number24(height-1))
}

// lossless are the pixels of a picture of one.
func lossless(tb testing.TB) string {
	tb.Helper()
	b, err := base64.StdEncoding.DecodeString("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")
	if err != nil {
		tb.Fatal(err)
	}
	return string(b[12:])
}

func frame(left, top, width, height int, pixels string) string {
	return riff("ANMF", number24(left/2)+number24(top/2)+number24(width-1)+number24(height-1)+number24(100)+"\x00"+pixels)
}
