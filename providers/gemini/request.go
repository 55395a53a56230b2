package gemini

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/inline"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// autoSize leaves the ratio to the vendor.
const autoSize = "auto"

// params are the fields of the gateway's request. N is the number of calls, and each call makes one
// image.
type params struct {
	Prompt     string      `json:"prompt"`
	Images     []reference `json:"image_urls"`
	Size       string      `json:"size"`
	Resolution string      `json:"resolution"`
	N          json.Number `json:"n"`
}

// reference is the link of an image. Requests write it as a string, or as an object with a url.
type reference string

// UnmarshalJSON accepts both forms.
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

// sizes maps the resolutions of the contract to the vendor's words.
var sizes = map[string]string{"0.5K": "512", "1K": "1K", "2K": "2K", "4K": "4K"}

func decode(job mediagate.Job) (*params, error) {
	p := new(params)
	var err error
	switch job.Operation {
	case opImage:
		err = vendorhttp.DecodeParams(job.Params, p)
	case opBaseImage:
		p, err = decodeBase(job)
	default:
		err = mediagate.Errorf(mediagate.KindNotFound, "operation %q is unknown here", job.Operation)
	}
	if err != nil {
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
		AspectRatio string `json:"aspectRatio,omitempty"` // empty: the vendor chooses
		ImageSize   string `json:"imageSize,omitempty"`
	}
)

// count returns how many images the client wants.
func (p *params) count() int {
	n, err := strconv.Atoi(p.N.String())
	if err != nil {
		return 1
	}
	return max(n, 1)
}

// images returns the reference images to fetch.
func (p *params) images() []inline.Image {
	var images []inline.Image
	for i, link := range p.Images {
		images = append(images, inline.Image{Field: fmt.Sprintf("image_urls[%d]", i), URL: string(link)})
	}
	return images
}

// document returns the vendor's request with these images.
func (p *params) document(images []inline.Blob) any {
	r := request{
		Contents: []turn{{Role: "user", Parts: []part{{Text: p.Prompt}}}},
		Config: config{
			Modalities: []string{"IMAGE"},
			Image:      imageConfig{AspectRatio: p.Size, ImageSize: sizes[p.Resolution]},
		},
	}
	if p.Size == autoSize {
		r.Config.Image.AspectRatio = ""
	}
	for _, img := range images {
		r.Contents[0].Parts = append(r.Contents[0].Parts, part{Inline: &blob{MimeType: img.MimeType, Data: img.Data}})
	}
	return r
}
