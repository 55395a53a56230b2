package s3server_test

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/png"
	"io"
	"testing"
)

// film returns a reader of a well-formed MP4 of exactly size bytes that declares 640×360 and 7.5
// seconds. Its headers come after the media data, as in the files of streaming encoders.
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

// header returns the movie box of film.
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

// pattern is an endless stream in which no two parts of an upload are equal.
type pattern struct{ n uint64 }

func (p *pattern) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(p.n ^ p.n>>8 ^ p.n>>16 ^ p.n>>24)
		p.n++
	}
	return len(b), nil
}

// picture returns a PNG of the given size.
func picture(tb testing.TB, width, height int) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}
