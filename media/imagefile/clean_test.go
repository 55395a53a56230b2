package imagefile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	_ "golang.org/x/image/webp"

	"github.com/mediagate/mediagate/media/imagefile"
)

func clean(file string) (string, imagefile.Info, error) {
	var out bytes.Buffer
	info, err := imagefile.Clean(&out, strings.NewReader(file))
	return out.String(), info, err
}

// TestCleanKeepsThePicture checks that all pixels stay the same and that all invisible data is
// gone.
func TestCleanKeepsThePicture(t *testing.T) {
	t.Parallel()
	pngFile, jpegFile, gifFile := encoded(t, "png", 40, 30), encoded(t, "jpeg", 40, 30), encoded(t, "gif", 40, 30)
	bare := func(orientation byte) string {
		return "II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00" + string([]byte{orientation}) + "\x00\x00\x00\x00\x00\x00\x00"
	}
	gray := pngChunk("gAMA", "\x00\x00\xb1\x8f")
	profile := pngChunk("iCCP", "sRGB\x00\x00"+packed(strings.Repeat("profile", 100)))
	jfif := segment(0xe0, "JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00")
	adobe := segment(0xee, "Adobe\x00\x64\x00\x00\x00\x00\x01")
	icc := segment(0xe2, "ICC_PROFILE\x00\x01\x01profile")
	pixel := lossless(t)
	still := imagefile.Info{Width: 40, Height: 30, Frames: 1}
	one := imagefile.Info{Width: 1, Height: 1, Frames: 1}
	loop := "!\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"
	for name, test := range map[string]struct {
		file, want string
		format     imagefile.Format
		info       imagefile.Info
	}{
		"PNG": {pngFile, pngFile, imagefile.PNG, still},
		"PNG, texts": {
			withChunks(pngFile, pngChunk("tEXt", "Comment\x00"+secret), pngChunk("zTXt", "C\x00\x00"+packed(secret)), pngChunk("iTXt", secret),
				pngChunk("tIME", "\x07\xea\x01\x01\x00\x00\x00"), pngChunk("vpAg", secret)),
			pngFile, imagefile.PNG, still,
		},
		"PNG, colours": {withChunks(pngFile, gray, profile), withChunks(pngFile, gray, profile), imagefile.PNG, still},
		"PNG, hints that hold more, or come again": {
			withChunks(pngFile, pngChunk("pHYs", secret), gray, pngChunk("gAMA", "GPS!"), pngChunk("sRGB", secret), profile, pngChunk("iCCP", "p\x00\x00"+packed(secret)), pngChunk("fdAT", secret)),
			withChunks(pngFile, gray, profile), imagefile.PNG, still,
		},
		"PNG, turned":      {withChunks(pngFile, pngChunk("eXIf", exif(binary.BigEndian, 6))), withChunks(pngFile, pngChunk("eXIf", bare(6))), imagefile.PNG, still},
		"PNG, upright":     {withChunks(pngFile, pngChunk("eXIf", exif(binary.LittleEndian, 1))), pngFile, imagefile.PNG, still},
		"PNG, no EXIF":     {withChunks(pngFile, pngChunk("eXIf", secret)), pngFile, imagefile.PNG, still},
		"PNG, turned once": {withChunks(pngFile, pngChunk("eXIf", exif(binary.BigEndian, 6)), pngChunk("eXIf", exif(binary.BigEndian, 3))), withChunks(pngFile, pngChunk("eXIf", bare(6))), imagefile.PNG, still},
		"JPEG":             {jpegFile, jpegFile, imagefile.JPEG, still},
		"JPEG, metadata": {
			withSegments(jpegFile, jfif, segment(0xe1, "Exif\x00\x00"+exif(binary.LittleEndian, 8)), segment(0xe1, "http://ns.adobe.com/xap/1.0/\x00"+secret),
				icc, segment(0xe2, "MPF\x00"+secret), segment(0xed, "Photoshop 3.0\x00"+secret), segment(0xfe, secret), adobe),
			withSegments(jpegFile, jfif, segment(0xe1, "Exif\x00\x00"+bare(8)), icc, adobe), imagefile.JPEG, still,
		},
		"JPEG, a preview": {
			withSegments(jpegFile, segment(0xe0, "JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x04\x03"+secret[:36]), segment(0xee, "Adobe\x00\x64\x00\x00\x00\x00\x01"+secret)),
			withSegments(jpegFile, jfif, adobe), imagefile.JPEG, still,
		},
		"JPEG, fill bytes":          {withSegments(jpegFile, "\xff\xff", segment(0xfe, secret)[1:]), jpegFile, imagefile.JPEG, still},
		"JPEG, bytes of no segment": {withSegments(jpegFile, segment(0xfe, secret)+secret+"\xff\x00\xff\xd0"+secret), jpegFile, imagefile.JPEG, still},
		"JPEG, upright":             {withSegments(jpegFile, segment(0xe1, "Exif\x00\x00"+exif(binary.BigEndian, 1))), jpegFile, imagefile.JPEG, still},
		"GIF":                       {gifFile, gifFile, imagefile.GIF, still},
		"GIF, comments": {
			gifFile[:len(gifFile)-1] + "!\xfe\x24" + secret + "\x00!\xff\x0bXMP DataXMP\x24" + secret + "\x00" + loop + "!\x01\x0c123456789012\x24" + secret + "\x00!\xff\x0bNETSCAPE2.0\x24" + secret + "\x00;",
			gifFile[:len(gifFile)-1] + loop + ";", imagefile.GIF, still,
		},
		"GIF, a film": {film(3), film(3), imagefile.GIF, imagefile.Info{Width: 2, Height: 2, Frames: 3}},
		"WebP":        {webp(pixel), webp(pixel), imagefile.WebP, one},
		"WebP, metadata": {
			webp(features(0x2c, 1, 1), riff("ICCP", "profile"), pixel, riff("EXIF", exif(binary.BigEndian, 3)), riff("XMP ", secret), riff("SECR", secret)),
			webp(features(0x2c, 1, 1), riff("ICCP", "profile"), pixel,
				riff("EXIF", bare(3)+strings.Repeat("\x00", len(exif(binary.BigEndian, 3))-26)),
				riff("XMP ", strings.Repeat(" ", len(secret))), riff("VOID", strings.Repeat("\x00", len(secret)))),
			imagefile.WebP, one,
		},
		"WebP, EXIF as in a JPEG": {
			webp(features(8, 1, 1), pixel, riff("EXIF", "Exif\x00\x00"+exif(binary.LittleEndian, 5))),
			webp(features(8, 1, 1), pixel, riff("EXIF", bare(5)+strings.Repeat("\x00", len(exif(binary.LittleEndian, 5))-20))),
			imagefile.WebP, one,
		},
		"WebP, a film": {
			webp(features(2, 4, 4), riff("ANIM", "\x00\x00\x00\x00\x00\x00"), frame(0, 0, 1, 1, pixel), frame(2, 2, 1, 1, pixel+riff("SECR", secret))),
			webp(features(2, 4, 4), riff("ANIM", "\x00\x00\x00\x00\x00\x00"), frame(0, 0, 1, 1, pixel), frame(2, 2, 1, 1, pixel+riff("VOID", strings.Repeat("\x00", len(secret))))),
			imagefile.WebP,
			imagefile.Info{Width: 4, Height: 4, Frames: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, info, err := clean(test.file)
			if err != nil {
				t.Fatal(err)
			}
			test.info.Format = test.format
			if diff := cmp.Diff(test.info, info); diff != "" {
				t.Errorf("info (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]byte(test.want), []byte(got)); diff != "" {
				t.Errorf("file (-want +got):\n%s", diff)
			}
			if strings.Contains(got, secret) {
				t.Error("what has to go is still there")
			}
			if info.Frames == 1 && info.Format != imagefile.WebP || name == "WebP" {
				before, _, err := image.Decode(strings.NewReader(test.file))
				if err != nil {
					t.Fatalf("no reader takes the original: %v", err)
				}
				after, _, err := image.Decode(strings.NewReader(got))
				if err != nil {
					t.Fatalf("no reader takes the copy: %v", err)
				}
				if diff := cmp.Diff(before, after); diff != "" {
					t.Errorf("the pixels differ:\n%s", diff)
				}
			}
		})
	}
}

// TestCleanTakesAnyJPEG checks that every JPEG of the standard is accepted by its header, with
// any process, coding, depth and sampling.
func TestCleanTakesAnyJPEG(t *testing.T) {
	t.Parallel()
	const gray, luma21 = "\x01\x01\x11\x00", "\x03\x01\x22\x00\x02\x21\x01\x03\x21\x01"
	header := func(mark, bits byte, parts string) string {
		return segment(mark, string([]byte{bits})+"\x00\x1e\x00\x28"+parts)
	}
	scan := segment(0xda, "\x01\x01\x00\x00\x3f\x00") + "pixels"
	files := map[string]string{
		"luma 2×2 beside chroma 2×1":  header(0xc0, 8, luma21) + scan,
		"luma 2×2 beside chroma 1×2":  header(0xc0, 8, "\x03\x01\x22\x00\x02\x12\x01\x03\x12\x01") + scan,
		"luma 1×1 beside chroma 2×2":  header(0xc2, 8, "\x03\x01\x11\x00\x02\x22\x01\x03\x22\x01") + scan,
		"chroma of two kinds":         header(0xc0, 8, "\x03\x01\x22\x00\x02\x21\x01\x03\x12\x01") + scan,
		"two parts":                   header(0xc0, 8, "\x02\x01\x11\x00\x02\x11\x01") + scan,
		"12 bits":                     header(0xc1, 12, gray) + scan,
		"16 bits, lossless":           header(0xc3, 16, gray) + scan,
		"arithmetic, its tables":      segment(0xcc, "\x00\x10") + header(0xc9, 8, gray) + scan,
		"a number of lines":           header(0xc0, 8, gray) + scan + segment(0xdc, "\x00\x1e"),
		"layers":                      header(0xde, 8, gray) + header(0xc0, 8, gray) + scan + segment(0xdf, "\x11") + header(0xc5, 8, gray) + scan,
		"a header behind much of all": segment(0xe0, strings.Repeat("x", 65_000)) + header(0xc0, 8, gray) + scan,
	}
	for mark := byte(0xc0); mark <= 0xcf; mark++ {
		if mark != 0xc4 && mark != 0xc8 && mark != 0xcc {
			files[fmt.Sprintf("SOF%d", mark-0xc0)] = header(mark, 8, gray) + scan
		}
	}
	for name, inner := range files {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := "\xff\xd8" + inner + "\xff\xd9"
			for after, more := range map[string]string{"nothing": "", "HTML": "<html>", "a gain map": file, "a film": "\x00\x00\x00\x18ftypmp42", "padding": strings.Repeat("\x00", 70_000)} {
				got, info, err := clean(file + more)
				if want := (imagefile.Info{Format: imagefile.JPEG, Width: 40, Height: 30, Frames: 1}); err != nil || info != want {
					t.Fatalf("with %s behind it %+v, %v", after, info, err)
				}
				if !strings.HasSuffix(file, got[2:]) || len(got) > len(file) {
					t.Errorf("with %s behind it %d bytes come out of %d", after, len(got), len(file))
				}
			}
			if w, h, err := imagefile.JPEGSides(iotest.OneByteReader(strings.NewReader(file[:len(file)-len("pixels\xff\xd9")]))); w != 40 || h != 30 || err != nil {
				t.Errorf("its header says %d × %d, %v", w, h, err)
			}
		})
	}
	for name, file := range map[string]string{"cut": "\xff\xd8" + header(0xc0, 8, gray)[:6], "nothing": ""} {
		if w, h, err := imagefile.JPEGSides(strings.NewReader(file)); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %d × %d, %v", name, w, h, err)
		}
	}
	if w, h, err := imagefile.JPEGSides(strings.NewReader("\xff\xd8" + segment(0xc0, "\x08\xff\xff\xff\xff"+gray))); w != 65535 || h != 65535 || err != nil {
		t.Errorf("a large header says %d × %d, %v", w, h, err)
	}
}

func TestCleanRefuses(t *testing.T) {
	t.Parallel()
	pngFile, jpegFile, gifFile := encoded(t, "png", 40, 30), encoded(t, "jpeg", 40, 30), encoded(t, "gif", 40, 30)
	pixel := lossless(t)
	data := pngChunk("IDAT", packed("data"))
	sof := func(width, height uint16) string {
		b := binary.BigEndian.AppendUint16([]byte{8}, height)
		return segment(0xc0, string(append(binary.BigEndian.AppendUint16(b, width), 1, 1, 0x11, 0)))
	}
	sos := segment(0xda, "\x01\x01\x00\x00\x3f\x00") + "pixels"
	for name, test := range map[string]struct{ file, says string }{
		"nothing":           {"", "is empty"},
		"one byte":          {"x", "is no JPEG, PNG, WebP or GIF image"},
		"SVG":               {"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>", "is no JPEG, PNG, WebP or GIF image"},
		"HTML":              {"<!DOCTYPE html><img>", "is no JPEG, PNG, WebP or GIF image"},
		"BMP":               {"BM" + strings.Repeat("\x00", 100), "is no JPEG, PNG, WebP or GIF image"},
		"TIFF":              {"II*\x00" + strings.Repeat("\x00", 100), "is no JPEG, PNG, WebP or GIF image"},
		"an MP4":            {"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom", "is no JPEG, PNG, WebP or GIF image"},
		"a WAV":             {riff("RIFF", "WAVEfmt "), "is no JPEG, PNG, WebP or GIF image"},
		"HTML before a PNG": {"<html>" + pngFile, "is no JPEG, PNG, WebP or GIF image"},

		"PNG and HTML":                     {pngFile + "<html>", "goes on after the end"},
		"PNG and a ZIP":                    {pngFile + "PK\x03\x04", "goes on after the end"},
		"PNG and one byte":                 {pngFile + "\n", "goes on after the end"},
		"PNG twice":                        {pngFile + pngFile, "goes on after the end"},
		"PNG, its signature alone":         {pngStart, "ends before"},
		"PNG without an end":               {pngFile[:len(pngFile)-12], "ends before"},
		"PNG, cut checksum":                {pngFile[:len(pngFile)-1], "ends before"},
		"PNG, wrong checksum":              {strings.Replace(pngFile, "IEND\xae", "IEND\xaf", 1), "the checksum of a chunk is wrong"},
		"PNG, wrong checksum of what goes": {withChunks(pngFile, "\x00\x00\x00\x01tEXtx\x00\x00\x00\x00"), "the checksum of a chunk is wrong"},
		"PNG without pixels":               {pngStart + pngHeader(4, 4) + pngEnd, "holds no image"},
		"PNG without a header":             {pngStart + data + pngEnd, "its header is not its first chunk"},
		"PNG, two headers":                 {withChunks(pngFile, pngHeader(4, 4)), "its header is not its first chunk"},
		"PNG, pixels interrupted":          {pngStart + pngHeader(4, 4) + data + pngChunk("tEXt", "a\x00b") + data + pngEnd, "its pixels are interrupted"},
		"PNG, unknown and critical":        {withChunks(pngFile, pngChunk("CgBI", "0000")), "the chunk CgBI is not known"},
		"PNG, no width":                    {pngStart + pngHeader(0, 4) + data + pngEnd, "it has no width"},
		"PNG, a side too long":             {pngStart + pngHeader(16_385, 1) + data + pngEnd, "is 16385 × 1 pixels"},
		"PNG, a bomb":                      {pngStart + pngHeader(16_384, 16_384) + data + pngEnd, "is 16384 × 16384 pixels"},
		"PNG, sides beyond all":            {pngStart + pngHeader(1<<32-1, 1<<32-1) + data + pngEnd, "pixels"},
		"PNG, an odd depth":                {pngStart + pngChunk("IHDR", "\x00\x00\x00\x04\x00\x00\x00\x04\x03\x06\x00\x00\x00") + data + pngEnd, "values that no PNG has"},
		"PNG, no palette":                  {pngStart + pngChunk("IHDR", "\x00\x00\x00\x04\x00\x00\x00\x04\x08\x03\x00\x00\x00") + data + pngEnd, "come before their palette"},
		"PNG, a long palette":              {withChunks(pngFile, pngChunk("PLTE", strings.Repeat("abc", 257))), "its palette"},
		"PNG, a chunk beyond all":          {pngFile[:33] + "\xff\xff\xff\xffIDAT", "no valid head"},
		"PNG, a chunk of no name":          {pngFile[:33] + "\x00\x00\x00\x00ID T", "no valid head"},
		"PNG, a bomb of a profile":         {withChunks(pngFile, pngChunk("iCCP", "p\x00\x00"+packed(strings.Repeat("\x00", 5<<20)))), "colour profile that is too large"},
		"PNG, a broken profile":            {withChunks(pngFile, pngChunk("iCCP", "p\x00\x00nothing")), "cannot be unpacked"},
		"PNG, a profile cut short":         {withChunks(pngFile, pngChunk("iCCP", "p\x00\x00"+packed("profile")[:9])), "cannot be unpacked"},
		"PNG, a nameless profile":          {withChunks(pngFile, pngChunk("iCCP", strings.Repeat("p", 200))), "no name"},
		"PNG, frames beyond it":            {withChunks(pngFile, pngChunk("fcTL", strings.Repeat("\x00", 4)+"\x00\x00\x00\x29\x00\x00\x00\x01"+strings.Repeat("\x00", 14))), "does not lie within"},

		"JPEG without an end":    {jpegFile[:len(jpegFile)-2], "ends before"},
		"JPEG cut":               {jpegFile[:len(jpegFile)/2], "ends before"},
		"JPEG of two markers":    {"\xff\xd8\xff\xd9", "holds no image"},
		"JPEG without pixels":    {"\xff\xd8" + sof(8, 8) + "\xff\xd9", "holds no image"},
		"JPEG, pixels first":     {"\xff\xd8" + sos + "\xff\xd9", "its pixels come before"},
		"JPEG, two headers":      {"\xff\xd8" + sof(8, 8) + sof(8, 8) + sos + "\xff\xd9", "two headers"},
		"JPEG, height to come":   {"\xff\xd8" + sof(8, 0) + sos + "\xff\xd9", "no height"},
		"JPEG, a bomb":           {"\xff\xd8" + sof(65_500, 65_500) + sos + "\xff\xd9", "is 65500 × 65500 pixels"},
		"JPEG, 17 bits":          {"\xff\xd8" + segment(0xc3, "\x11\x00\x08\x00\x08\x01\x01\x11\x00") + sos + "\xff\xd9", "values that no JPEG has"},
		"JPEG of no parts":       {"\xff\xd8" + segment(0xc0, "\x08\x00\x08\x00\x08\x00") + sos + "\xff\xd9", "values that no JPEG has"},
		"JPEG, an extension":     {"\xff\xd8" + segment(0xc8, "12345678") + sof(8, 8) + sos + "\xff\xd9", "marker C8"},
		"JPEG, layers of a bomb": {"\xff\xd8" + segment(0xde, "\x08\xff\xff\xff\xff\x01\x01\x11\x00") + sof(8, 8) + sos + "\xff\xd9", "is 65535 × 65535 pixels"},
		"JPEG, a bomb in layers": {"\xff\xd8" + segment(0xde, "\x08\x00\x08\x00\x08\x01\x01\x11\x00") + sof(65_500, 65_500) + sos + "\xff\xd9", "a layer is larger than the image"},
		"JPEG, a text for lines": {withSegments(jpegFile, segment(0xdc, secret)), "DC is longer than any"},
		"JPEG, texts for tables": {withSegments(jpegFile, segment(0xdb, strings.Repeat(secret, 20))), "DB is longer than any"},
		"JPEG, a short header":   {"\xff\xd8" + segment(0xc0, "\x08") + sos + "\xff\xd9", "too short"},
		"JPEG, scans beyond all": {"\xff\xd8" + sof(8, 8) + strings.Repeat(sos, 101) + "\xff\xd9", "more than 100 scans"},
		"JPEG, no marker":        {"\xff\xd8" + sof(8, 8) + "text", "ends before"},
		"JPEG, a length of one":  {"\xff\xd8\xff\xfe\x00\x01", "no valid length"},
		"JPEG, a vast profile":   {withSegments(jpegFile, strings.Repeat(segment(0xe2, "ICC_PROFILE\x00"+strings.Repeat("p", 60_000)), 80)), "colour profile that is too large"},

		"GIF and HTML":            {gifFile + "<script>", "goes on after the end"},
		"GIF without an end":      {gifFile[:len(gifFile)-1], "ends before"},
		"GIF as a comment":        {"GIF89a=1;/*\x00\x00*/alert(1)//", "block"},
		"GIF without a frame":     {"GIF89a\x02\x00\x02\x00\x00\x00\x00;", "holds no image"},
		"GIF, 10,000 frames":      {film(10_000), "has more than 1000 frames"},
		"GIF, one frame too many": {film(1001), "has more than 1000 frames"},
		"GIF, a bomb of frames":   {strings.ReplaceAll(film(6), "\x02\x00\x02\x00", "\xb0\x36\xb0\x36"), "more than 1000000000 pixels together"},
		"GIF, a frame outside":    {strings.Replace(film(1), ",\x00\x00", ",\x01\x00", 1), "does not lie within"},
		"GIF, code size":          {strings.Replace(film(1), "\x02\x00\x00\x02\x03", "\x02\x00\x00\x0c\x03", 1), "code size"},
		"GIF, control":            {strings.Replace(film(1), "\xf9\x04", "\xf9\x05", 1), "an extension has another length"},

		"WebP and HTML":            {webp(pixel) + "<html>", "goes on after the end"},
		"WebP cut":                 {webp(pixel)[:30], "ends before"},
		"WebP without pixels":      {webp(features(0, 1, 1)), "holds no image"},
		"WebP of nothing":          {webp(), "holds no image"},
		"WebP, two images":         {webp(features(0, 1, 1), pixel, pixel), "second image"},
		"WebP, a chunk beyond":     {riff("RIFF", "WEBP"+pixel[:4]+"\xff\x00\x00\x00"+pixel[8:]), "longer than what it is in"},
		"WebP, two sizes":          {webp(features(0, 2, 2), pixel), "two sizes"},
		"WebP, a bomb":             {webp(features(0, 1<<24, 1<<24), pixel), "pixels"},
		"WebP, features late":      {webp(pixel, features(0, 1, 1)), "misplaced"},
		"WebP, EXIF without them":  {webp(pixel, riff("EXIF", "1234")), "misplaced"},
		"WebP, a frame too many":   {webp(features(2, 1, 1), strings.Repeat(frame(0, 0, 1, 1, pixel), 1001)), "has more than 1000 frames"},
		"WebP, a frame of a still": {webp(features(0, 1, 1), frame(0, 0, 1, 1, pixel)), "does not move"},
		"WebP, an empty frame":     {webp(features(2, 1, 1), frame(0, 0, 1, 1, "")), "holds no image"},
		"WebP, a frame outside":    {webp(features(2, 1, 1), frame(2, 0, 1, 1, pixel)), "does not lie within"},
		"WebP, pixels of text":     {webp(riff("VP8 ", "alert(1);/")), "no valid head"},
		"WebP, an odd length":      {"RIFF\x1b\x00\x00\x00WEBP" + pixel + "\x00", "its length is not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := clean(test.file)
			words, ok := errors.AsType[imagefile.Unusable](err)
			if test.says == "\x00" {
				test.says = "there is no marker where one must be"
			}
			if !ok || !strings.Contains(words.Error(), test.says) {
				t.Errorf("the error is %v, want %q", err, test.says)
			}
		})
	}
}

// TestCleanBounds checks that the largest allowed picture is accepted.
func TestCleanBounds(t *testing.T) {
	t.Parallel()
	data := pngChunk("IDAT", packed("data"))
	for name, file := range map[string]string{
		"frames": film(imagefile.MaxFrames),
		"pixels": pngStart + pngHeader(16_384, 12_207) + data + pngEnd,
	} {
		if _, _, err := clean(file); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := clean(pngStart + pngHeader(16_384, 12_208) + data + pngEnd); err == nil {
		t.Error("more pixels than allowed are taken")
	}
}

// TestCleanOfPieces checks that no part of a file is accepted as complete, and that the sizes of
// reads make no difference.
func TestCleanOfPieces(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"png": encoded(t, "png", 20, 20), "jpeg": encoded(t, "jpeg", 20, 20), "gif": film(2),
		"webp": webp(features(8, 1, 1), lossless(t), riff("EXIF", exif(binary.BigEndian, 3))),
	} {
		want, _, err := clean(file)
		if err != nil {
			t.Fatal(err)
		}
		for n := range len(file) {
			if _, _, err := clean(file[:n]); err == nil {
				t.Fatalf("%s: the first %d of %d bytes pass", name, n, len(file))
			}
		}
		var got bytes.Buffer
		if _, err := imagefile.Clean(&got, iotest.OneByteReader(strings.NewReader(file))); err != nil || got.String() != want {
			t.Errorf("%s byte by byte: %v", name, err)
		}
	}
}

var errBroken = errors.New("broken")

// TestCleanPassesErrorsOn checks that an error of the reader or the writer is not reported as one
// of the file.
func TestCleanPassesErrorsOn(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"png":  withChunks(encoded(t, "png", 200, 200), pngChunk("iCCP", "p\x00\x00"+packed(strings.Repeat("profile", 10_000)))),
		"jpeg": encoded(t, "jpeg", 200, 200), "gif": encoded(t, "gif", 200, 200),
		"webp": webp(features(8, 1, 1), lossless(t), riff("EXIF", exif(binary.BigEndian, 3))),
	} {
		for range 200 {
			at := rand.IntN(len(file))
			r := io.MultiReader(strings.NewReader(file[:at]), iotest.ErrReader(errBroken))
			if _, err := imagefile.Clean(io.Discard, r); !errors.Is(err, errBroken) {
				t.Fatalf("%s, broken at %d: %v", name, at, err)
			}
		}
		if _, err := imagefile.Clean(iotest.TruncateWriter(failing{}, 0), strings.NewReader(file)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := imagefile.Clean(failing{}, strings.NewReader(file)); !errors.Is(err, errBroken) {
			t.Errorf("%s, nobody takes it: %v", name, err)
		}
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errBroken }

// A copy is clean: copied again it stays as it is.
func FuzzClean(f *testing.F) {
	for _, format := range []string{"png", "jpeg", "gif"} {
		f.Add([]byte(encoded(f, format, 9, 7)))
	}
	f.Add([]byte(film(3)))
	f.Add([]byte(withSegments(encoded(f, "jpeg", 9, 7), segment(0xe1, "Exif\x00\x00"+exif(binary.BigEndian, 6)))))
	f.Add([]byte(withChunks(encoded(f, "png", 9, 7), pngChunk("eXIf", exif(binary.BigEndian, 6)), pngChunk("iCCP", "p\x00\x00"+packed("profile")))))
	f.Add([]byte(webp(features(0x2e, 4, 4), riff("ANIM", "123456"), frame(0, 0, 1, 1, lossless(f)), riff("EXIF", exif(binary.BigEndian, 3)), riff("XMP ", "x"))))
	f.Fuzz(func(t *testing.T, file []byte) {
		once, info, err := clean(string(file))
		if err != nil {
			return
		}
		twice, again, err := clean(once)
		if err != nil {
			t.Fatalf("the copy is refused: %v", err)
		}
		if once != twice || info != again {
			t.Errorf("the copy changes:\n%s", cmp.Diff([]byte(once), []byte(twice)))
		}
	})
}
