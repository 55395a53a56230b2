package gemini

import (
	"encoding/base64"
	"math"
	"slices"
	"strings"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// imagesMax is how many images a request may refer to.
const imagesMax = 14

var imageTypes = []string{"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}

// request is what a call asks for.
type request struct {
	prompt   string // the user's texts
	images   int    // within the request
	files    int    // named by it
	first    kernel.Picture
	ratio    string // "": as the first image, else square
	size     string
	talks    bool // a text may come beside the image
	thoughts bool // and the thoughts that led to it
}

// readRequest reads a request.
func readRequest(in *kernel.Object) *request {
	in.Only("contents", "generationConfig", "tools", "safetySettings")
	q := &request{size: "1K", talks: true}
	contents := in.Objects("contents", 100)
	if len(contents) == 0 {
		in.Fail("contents", "contents is not specified")
	}
	var texts []string
	for i, c := range contents {
		c.Only("role", "parts")
		role := c.Word("role", "user", "user", "model")
		if i == len(contents)-1 && role != "user" {
			c.Fail("role", "the last turn must be the user's")
		}
		parts := c.Objects("parts", 100)
		if len(parts) == 0 {
			c.Fail("parts", "must not be empty")
		}
		for _, part := range parts {
			if s, ok := q.part(part); ok && role == "user" {
				texts = append(texts, s)
			}
		}
	}
	q.prompt = strings.Join(texts, "\n")
	if q.images+q.files > imagesMax {
		in.Fail("contents", "at most %d images are allowed", imagesMax)
	}
	q.configure(in.Nested("generationConfig"))
	for _, tool := range in.Objects("tools", 10) {
		tool.Only("googleSearch")
		tool.Nested("googleSearch").Only()
	}
	for _, s := range in.Objects("safetySettings", 10) {
		s.Only("category", "threshold")
		if s.Word("category", "", "HARM_CATEGORY_HARASSMENT", "HARM_CATEGORY_HATE_SPEECH", "HARM_CATEGORY_SEXUALLY_EXPLICIT",
			"HARM_CATEGORY_DANGEROUS_CONTENT", "HARM_CATEGORY_CIVIC_INTEGRITY") == "" {
			s.Fail("category", "is required")
		}
		s.Word("threshold", "", "BLOCK_LOW_AND_ABOVE", "BLOCK_MEDIUM_AND_ABOVE", "BLOCK_ONLY_HIGH", "BLOCK_NONE", "OFF")
	}
	return q
}

// part reads one part; a text is returned.
func (q *request) part(part *kernel.Object) (text string, ok bool) {
	part.Only("text", "inlineData", "fileData")
	kinds := 0
	for _, kind := range []string{"text", "inlineData", "fileData"} {
		if part.Has(kind) {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		part.Fail("data", "exactly one of text, inlineData and fileData must be set")
	case part.Has("inlineData"):
		q.images++
		q.inline(part.Nested("inlineData"))
	case part.Has("fileData"):
		q.files++
		file := part.Nested("fileData")
		file.Only("mimeType", "fileUri")
		mimeType(file)
		file.Link("fileUri")
	default:
		return part.Text("text"), true
	}
	return "", false
}

func mimeType(in *kernel.Object) string {
	s := in.Text("mimeType")
	if !slices.Contains(imageTypes, s) {
		in.Fail("mimeType", "unsupported MIME type: %s", s)
	}
	return s
}

// inline opens an image of the request.
func (q *request) inline(in *kernel.Object) {
	in.Only("mimeType", "data")
	kind := strings.TrimPrefix(mimeType(in), "image/")
	data := in.Text("data")
	if in.Err() != nil {
		return
	}
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		in.Fail("data", "Base64 decoding failed")
		return
	}
	if kind == "heic" || kind == "heif" {
		if len(raw) < 12 || string(raw[4:8]) != "ftyp" {
			in.Fail("data", "Unable to process input image")
		}
		return
	}
	// The vendor looks at the bytes, whatever type was said.
	p, ok := kernel.ReadPicture(raw)
	if !ok {
		in.Fail("data", "Unable to process input image")
		return
	}
	if q.first.Width == 0 {
		q.first = p
	}
}

// configure reads the shape of what is to be made.
func (q *request) configure(in *kernel.Object) {
	in.Only("responseModalities", "imageConfig", "candidateCount", "thinkingConfig")
	if in.Has("responseModalities") {
		q.modalities(in)
	}
	if in.Has("candidateCount") {
		in.Integer("candidateCount", 1, 1)
	}
	image := in.Nested("imageConfig")
	image.Only("aspectRatio", "imageSize")
	q.ratio = image.Word("aspectRatio", "", ratios()...)
	q.size = image.Word("imageSize", "1K", "512", "1K", "2K", "4K")
	thinking := in.Nested("thinkingConfig")
	thinking.Only("includeThoughts", "thinkingLevel")
	q.thoughts = thinking.Flag("includeThoughts")
	thinking.Word("thinkingLevel", "", "MINIMAL", "HIGH", "minimal", "high")
}

// modalities are an image, alone or with a text.
func (q *request) modalities(in *kernel.Object) {
	list, ok := in.Value("responseModalities").([]any)
	image := false
	q.talks = false
	for _, m := range list {
		switch m {
		case "IMAGE":
			image = true
		case "TEXT":
			q.talks = true
		default:
			ok = false
		}
	}
	if !ok || !image {
		in.Fail("responseModalities", "must be IMAGE, or TEXT and IMAGE")
	}
}

// shapes are the sizes of an image of 1K.
var shapes = []struct {
	ratio         string
	width, height int
}{
	{"1:1", 1024, 1024},
	{"2:3", 848, 1264},
	{"3:2", 1264, 848},
	{"3:4", 896, 1200},
	{"4:3", 1200, 896},
	{"4:5", 928, 1152},
	{"5:4", 1152, 928},
	{"9:16", 768, 1376},
	{"16:9", 1376, 768},
	{"21:9", 1584, 672},
	{"1:4", 512, 2048},
	{"4:1", 2048, 512},
	{"1:8", 384, 3072},
	{"8:1", 3072, 384},
}

func ratios() []string {
	var list []string
	for _, s := range shapes {
		list = append(list, s.ratio)
	}
	return list
}

// pixels is the size of the image that is asked for. Without a ratio it is the
// one nearest to the first image's, square when there is none.
func (q *request) pixels() (width, height int) {
	best, distance := shapes[0], math.Inf(1)
	for _, s := range shapes {
		switch {
		case s.ratio == q.ratio:
			best, distance = s, -1
		case q.ratio == "" && q.first.Width > 0:
			d := math.Abs(math.Log(float64(s.width) / float64(s.height) * float64(q.first.Height) / float64(q.first.Width)))
			if d < distance {
				best, distance = s, d
			}
		}
	}
	halves := map[string]int{"512": 1, "1K": 2, "2K": 4, "4K": 8}[q.size]
	return best.width * halves / 2, best.height * halves / 2
}

// tokens is what an image of the size counts for.
func (q *request) tokens() int {
	return map[string]int{"512": 747, "1K": 1120, "2K": 1680, "4K": 2520}[q.size]
}
