package mediainfo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"strings"
	"testing"
)

// fault feeds the file in pieces and asks what is wrong with it.
func fault(tb testing.TB, file []byte, piece int) error {
	tb.Helper()
	f, detected, ok := Detect(file)
	if !ok {
		tb.Fatalf("%s is nothing that we store", detected)
	}
	return faultOf(f, file, piece)
}

func faultOf(f Format, file []byte, piece int) error {
	p := NewProbe(f)
	for len(file) > 0 {
		n := min(piece, len(file))
		_, _ = p.Write(file[:n])
		file = file[n:]
	}
	return p.Fault()
}

func isom(brand string) []byte { return box("ftyp", []byte(brand), words(0x200), []byte("isom")) }

// reel is a movie box of one track of the kind, which lasts so many milliseconds.
func reel(kind string, length uint32) []byte {
	return box("moov", mvhd(1000, length), box("trak", tkhd(length, 64, 36, make([]byte, 36)), mdia(kind, 1000, length)))
}

func gifOf(tb testing.TB) []byte {
	tb.Helper()
	var b bytes.Buffer
	frame := image.NewPaletted(image.Rect(0, 0, 5, 4), color.Palette{color.Black, color.White})
	film := &gif.GIF{Image: []*image.Paletted{frame, frame}, Delay: []int{1, 1}, LoopCount: 3}
	if err := gif.EncodeAll(&b, film); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func TestFault(t *testing.T) {
	t.Parallel()
	var wide bytes.Buffer
	if err := png.Encode(&wide, image.NewGray16(image.Rect(0, 0, 3, 2))); err != nil {
		t.Fatal(err)
	}
	jpg, webp := read(t, "picture.jpg"), read(t, "picture.webp")
	comment := append([]byte{0xff, 0xfe, 0xff, 0xff}, make([]byte, 0xfffd)...)
	noted := func(n int) []byte { return join(jpg[:2], bytes.Repeat(comment, n), jpg[2:]) }
	animated := append([]byte("RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x02\x00\x00\x00\x1d\x00\x00\x0f\x00\x00"), webp[12:]...)
	binary.LittleEndian.PutUint32(animated[4:], uint32(len(animated)-8))
	film := read(t, "tail.mp4")

	for name, c := range map[string]struct {
		file []byte
		want error
	}{
		"first bytes of a GIF":      {[]byte("GIF89a"), unreadable},
		"a GIF of script":           {[]byte("GIF89a<script>alert(1)</script>"), unreadable},
		"a GIF of a script's words": {[]byte("GIF89a=1;/*\x00\x00" + strings.Repeat("x", 4000)), unreadable},
		"a GIF without a frame":     {append(gifOf(t)[:13+6], 0x3b), unreadable},
		"a GIF that breaks off":     {gifOf(t)[:16], unreadable},
		"an animated GIF":           {gifOf(t), nil},
		"first bytes of a PNG":      {[]byte("\x89PNG\r\n\x1a\n"), unreadable},
		"a PNG of script":           {[]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR<script>alert(1)</script>"), unreadable},
		"a PNG of 16 bits":          {wide.Bytes(), nil},
		"first bytes of a JPEG":     {[]byte("\xff\xd8\xff"), unreadable},
		"a JPEG of script":          {[]byte("\xff\xd8\xff\xe0<script>alert(1)</script>"), unreadable},
		"a JPEG with much to say":   {noted(15), nil},
		"a JPEG with more than is kept": {
			noted(20), nil,
		},
		"first bytes of a WebP":          {[]byte("RIFF\x20\x00\x00\x00WEBPVP8 "), unreadable},
		"a WebP with an extended header": {animated, nil},
		"a bare brand":                   {[]byte("\x00\x00\x00\x10ftypisom\x00\x00\x02\x00"), noMovie},
		"a film without its end":         {film[:len(film)-400], unreadable},
		"a film without its movie box":   {film[:bytes.Index(film, []byte("moov"))-4], noMovie},
		"media behind a brand":           {join(isom("mp42"), box("mdat", make([]byte, 5000))), noMovie},
		"an empty movie box":             {join(isom("isom"), box("moov")), noPictures},
		"a film of sound only":           {join(isom("isom"), reel("soun", 1000)), noPictures},
		"a film that lasts no time":      {join(isom("isom"), reel("vide", 0)), noLength},
		"a film that lasts a year":       {join(isom("isom"), reel("vide", 1<<31)), noLength},
		"a film of another brand":        {join(isom("dash"), reel("vide", 1500)), nil},
		"an announcement of fragments": {
			join(isom("isom"), box("moov", mvhd(1000, 0), box("trak", tkhd(0, 64, 36, make([]byte, 36)), mdia("vide", 1000, 0)), box("mvex"))), noLength,
		},
		"a sound without a movie box": {isom("M4A "), unreadable},
		"a sound of pictures":         {join(isom("M4A "), reel("vide", 1000)), noSound},
		"a tag alone":                 {id3(100), noSound},
		"a tag before script":         {join(id3(10), []byte("<script>"+strings.Repeat("alert(1)", 1000))), noSound},
		"a tag before a sound":        {join(id3(2000), read(t, "sound.mp3")), nil},
		"a tag before an AAC":         {join(id3(300), adts(100)), nil}, // which is taken for an MP3
		"the header of a frame":       {append([]byte("\xff\xfb\x90\x00"), make([]byte, 5000)...), noSound},
		"first bytes of a WAV":        {[]byte("RIFF\x24\x00\x00\x00WAVEfmt "), noSound},
		"first bytes of a FLAC":       {[]byte("fLaC\x00\x00\x00\x22"), noSound},
		"a format that is not read":   {read(t, "film.webm")[:100], nil},
		"another that is not":         {read(t, "picture.avif")[:64], nil},
		"a sound that is not":         {read(t, "sound.ogg")[:60], nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, piece := range []int{1, 100, len(c.file)} {
				if err := fault(t, c.file, piece); !errors.Is(err, c.want) {
					t.Errorf("in pieces of %d: %v, want %v", piece, err, c.want)
				}
			}
		})
	}
}
