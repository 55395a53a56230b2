package gemini

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	_ "image/jpeg" // its size is looked at
	_ "image/png"
	"io"
	"net/http"
	"slices"
	"strconv"

	_ "golang.org/x/image/webp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

const (
	// maxRequest bounds a request with its images, in bytes.
	maxRequest = 20_000_000
	// maxPixels bounds an image to refer to: more than any camera makes.
	maxPixels = 100_000_000
	// autoSize leaves the ratio to the vendor.
	autoSize = "auto"
)

// params are the gateway's fields that the operation takes. N is the number of
// calls, each for one image.
type params struct {
	Prompt     string      `json:"prompt"`
	Images     []reference `json:"image_urls"`
	Size       string      `json:"size"`
	Resolution string      `json:"resolution"`
	N          json.Number `json:"n"`
}

// reference is the link of an image, as a text or as an object with it.
type reference string

// UnmarshalJSON takes both forms.
func (r *reference) UnmarshalJSON(b []byte) error {
	var object struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal(b, (*string)(r)); err == nil {
		return nil
	}
	err := json.Unmarshal(b, &object)
	*r = reference(object.URL)
	return err
}

// sizes are the vendor's words for our resolutions.
var sizes = map[string]string{"0.5K": "512", "1K": "1K", "2K": "2K", "4K": "4K"}

func decode(job mediagate.Job) (*params, error) {
	if job.Operation != opImage {
		return nil, mediagate.Errorf(mediagate.KindNotFound, "operation %q is unknown here", job.Operation)
	}
	p := new(params)
	if err := vendorhttp.DecodeParams(job.Params, p); err != nil {
		return nil, err
	}
	if p.Resolution != "" && sizes[p.Resolution] == "" {
		return nil, mediagate.Invalid("resolution", "resolution must be 0.5K, 1K, 2K or 4K here")
	}
	return p, nil
}

type (
	request struct {
		Contents []turn `json:"contents"`
		Config   config `json:"generationConfig"`
	}
	turn struct {
		Role  string `json:"role"`
		Parts []part `json:"parts"`
	}
	part struct {
		Text   string `json:"text,omitempty"`
		Inline *blob  `json:"inlineData,omitempty"`
	}
	blob struct {
		MimeType string `json:"mimeType"`
		Data     string `json:"data"`
	}
	config struct {
		Modalities []string    `json:"responseModalities"`
		Image      imageConfig `json:"imageConfig"`
	}
	imageConfig struct {
		AspectRatio string `json:"aspectRatio,omitempty"` // none: the vendor's choice
		ImageSize   string `json:"imageSize,omitempty"`
	}
)

// slot stands for the bytes of an image in the written request.
func slot(i int) string { return "\u0001" + strconv.Itoa(i) + "\u0001" }

// body writes the request. The images are fetched before anything is sent, and
// stay in memory as they came; base64 is made of them while they leave. sent is
// called when all have left.
func (p *params) body(ctx context.Context, in mediagate.Inputs, sent func()) (vendorhttp.Body, error) {
	r := request{
		Contents: []turn{{Role: "user"}},
		Config: config{
			Modalities: []string{"IMAGE"},
			Image:      imageConfig{AspectRatio: p.Size, ImageSize: sizes[p.Resolution]},
		},
	}
	if p.Size == autoSize {
		r.Config.Image.AspectRatio = ""
	}
	parts := []part{{Text: p.Prompt}}
	left := int64(maxRequest) - int64(len(p.Prompt)) - 4096
	var files [][]byte
	for i, link := range p.Images {
		file, kind, err := fetch(ctx, in, string(link), fmt.Sprintf("image_urls[%d]", i), left)
		if err != nil {
			return vendorhttp.Body{}, err
		}
		left -= int64(base64.StdEncoding.EncodedLen(len(file)))
		files = append(files, file)
		parts = append(parts, part{Inline: &blob{MimeType: kind, Data: slot(i)}})
	}
	r.Contents[0].Parts = parts
	text, err := vendorhttp.Encode(r)
	if err != nil {
		return vendorhttp.Body{}, mediagate.Errorf(mediagate.KindInvalid, "the request cannot be written: %w", err)
	}
	if len(files) == 0 {
		return vendorhttp.JSON(text), nil
	}
	return join(text, files, sent), nil
}

// fetch opens an image and looks at it: at its type, since the vendor is told,
// and at its size in pixels. left is the room for it in base64.
func fetch(ctx context.Context, in mediagate.Inputs, link, field string, left int64) ([]byte, string, error) {
	limit := max(left/4*3, 0)
	body, _, err := in.Open(ctx, link, limit)
	if err != nil {
		return nil, "", err
	}
	defer body.Close()
	file, err := io.ReadAll(body)
	if err != nil {
		return nil, "", err
	}
	kind := http.DetectContentType(file)
	size, _, err := image.DecodeConfig(bytes.NewReader(file))
	switch {
	case !slices.Contains([]string{"image/png", "image/jpeg", "image/webp"}, kind), err != nil:
		return nil, "", refused(field, "must be a PNG, JPEG or WebP image")
	case size.Width*size.Height > maxPixels:
		return nil, "", refused(field, fmt.Sprintf("must have at most %d pixels", maxPixels))
	}
	return file, kind, nil
}

func refused(field, rule string) error {
	return &mediagate.Error{
		Kind: mediagate.KindInvalid, Code: string(mediagate.CodeImageProcessing), Param: field, Message: field + " " + rule,
	}
}

// join puts the images into the written request while it is read. It looks for
// their slots from the end: a prompt, which may hold anything, comes before. A
// piece that was read is let go of.
func join(text []byte, files [][]byte, sent func()) vendorhttp.Body {
	pieces := []io.Reader{end(sent)}
	length := int64(0)
	add := func(r io.Reader, n int) {
		pieces = append(pieces, r)
		length += int64(n)
	}
	for i, file := range slices.Backward(files) {
		at := bytes.LastIndex(text, escaped(i))
		tail := text[at+len(escaped(i)):]
		add(bytes.NewReader(tail), len(tail))
		add(encoded(file), base64.StdEncoding.EncodedLen(len(file)))
		text = text[:at]
	}
	add(bytes.NewReader(text), len(text))
	slices.Reverse(pieces)
	return vendorhttp.Streamed("application/json", io.MultiReader(pieces...), length)
}

// end is read after all else.
type end func()

func (e end) Read([]byte) (int, error) {
	e()
	return 0, io.EOF
}

// escaped is a slot as it stands in JSON.
func escaped(i int) []byte { return fmt.Appendf(nil, `\u0001%d\u0001`, i) }

// encoded is the base64 of a file, made while it is read.
func encoded(file []byte) io.Reader { return &encoder{file: file} }

type encoder struct {
	file  []byte
	ready bytes.Buffer
}

// chunk is a multiple of three, so that no padding comes between.
const chunk = 3 << 12

func (e *encoder) Read(p []byte) (int, error) {
	if e.ready.Len() == 0 {
		if len(e.file) == 0 {
			return 0, io.EOF
		}
		n := min(chunk, len(e.file))
		e.ready.Write(base64.StdEncoding.AppendEncode(nil, e.file[:n]))
		e.file = e.file[n:]
	}
	return e.ready.Read(p)
}
