package blobtest

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"testing"
)

// film returns a reader of a well-formed MP4 of exactly size bytes that says
// 640×360 and 7.5 seconds. Its headers come last, after the media data, as
// encoders that stream write them.
func film(size int64) io.Reader {
	ftyp := box("ftyp", []byte("isom\x00\x00\x02\x00isomiso2avc1mp41"))
	moov := header()
	data := size - int64(len(ftyp)) - int64(len(moov))
	return io.MultiReader(
		bytes.NewReader(ftyp),
		bytes.NewReader(binary.BigEndian.AppendUint32(nil, uint32(data))), bytes.NewReader([]byte("mdat")),
		io.LimitReader(&pattern{}, data-8),
		bytes.NewReader(moov),
	)
}

// header is the movie box of film.
func header() []byte {
	return box("moov",
		box("mvhd", words(0, 0, 0, 1000, 7500, 0x10000), make([]byte, 76)),
		box("trak",
			box("tkhd", words(7, 0, 0, 1, 0, 7500, 0, 0, 0, 0), identity(), words(640<<16, 360<<16)),
			box("mdia",
				box("mdhd", words(0, 0, 0, 12800, 96000, 0)),
				box("hdlr", words(0, 0), []byte("vide"), make([]byte, 13)),
			),
		),
	)
}

func box(id string, payload ...[]byte) []byte {
	body := bytes.Join(payload, nil)
	b := binary.BigEndian.AppendUint32(nil, uint32(8+len(body)))
	return append(append(b, id...), body...)
}

func words(values ...uint32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

func identity() []byte { return words(1<<16, 0, 0, 0, 1<<16, 0, 0, 0, 1<<30) }

// pattern is an endless stream in which no two parts of an upload are alike.
type pattern struct{ n uint64 }

func (p *pattern) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(p.n ^ p.n>>8 ^ p.n>>16 ^ p.n>>24)
		p.n++
	}
	return len(b), nil
}

// picture returns a PNG of the size.
func picture(tb testing.TB, width, height int) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// types are small files of the formats, by name.
func types(tb testing.TB) map[string][]byte {
	tb.Helper()
	canvas := image.NewPaletted(image.Rect(0, 0, 2, 2), color.Palette{color.Black, color.White})
	var jpg, animation bytes.Buffer
	if err := jpeg.Encode(&jpg, canvas, nil); err != nil {
		tb.Fatal(err)
	}
	if err := gif.Encode(&animation, canvas, nil); err != nil {
		tb.Fatal(err)
	}
	frame := append([]byte("\xff\xfb\x90\x00"), make([]byte, 413)...)
	return map[string][]byte{
		"jpeg": jpg.Bytes(),
		"gif":  animation.Bytes(),
		"webp": []byte("RIFF\x16\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x01\x00\x00"),
		"mov":  append([]byte("\x00\x00\x00\x14ftypqt  \x00\x00\x00\x00qt  "), header()...),
		"webm": []byte("\x1aE\xdf\xa3\x9fB\x86\x81\x01B\xf7\x81\x01B\xf2\x81\x04B\xf3\x81\x08B\x82\x84webm"),
		"mp3":  bytes.Repeat(frame, 3),
		"wav":  []byte("RIFF\x28\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00data\x04\x00\x00\x00\x00\x00\x00\x00"),
	}
}
