package gemini

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// job returns the job of a request for a model. It reads images from their bytes and ignores
// their stated types.
func job(model string, b kernel.Body) (*kernel.Job, error) {
	var (
		texts  []string
		images int
		first  kernel.Picture
	)
	for i, part := range b.List("contents")[0].List("parts") {
		data := part.Text("inlineData.data")
		if data == "" {
			texts = append(texts, part.Text("text"))
			continue
		}
		p, _, err := kernel.InlinePicture(data)
		if err != nil {
			return nil, kernel.NewViolation(fmt.Sprintf("contents[0].parts[%d].inlineData.data", i), "%s", err)
		}
		if images++; images == 1 {
			first = p
		}
	}
	size := cmp.Or(b.Text("generationConfig.imageConfig.imageSize"), "1K")
	width, height := pixels(b.Text("generationConfig.imageConfig.aspectRatio"), size, first)
	return &kernel.Job{
		ID: kernel.UUID(), Model: model, Prompt: strings.Join(texts, "\n"),
		Media:  kernel.Media{Kind: "image", Width: width, Height: height},
		Detail: map[string]string{"size": size, "images": strconv.Itoa(images)},
	}, nil
}

// shapes holds the sizes of images of 1K.
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

// pixels returns the size of the requested image. Without a ratio, it chooses the ratio nearest
// to the first input image's, or a square if there is none.
func pixels(ratio, size string, first kernel.Picture) (width, height int) {
	best, distance := shapes[0], math.Inf(1)
	for _, s := range shapes {
		switch {
		case s.ratio == ratio:
			best, distance = s, -1
		case ratio == "" && first.Width > 0:
			d := math.Abs(math.Log(float64(s.width) / float64(s.height) * float64(first.Height) / float64(first.Width)))
			if d < distance {
				best, distance = s, d
			}
		}
	}
	halves := map[string]int{"512": 1, "1K": 2, "2K": 4, "4K": 8}[size]
	return best.width * halves / 2, best.height * halves / 2
}

// tokens holds the number of tokens that an image counts for, by size.
var tokens = map[string]int{"512": 747, "1K": 1120, "2K": 1680, "4K": 2520}
