package dashscope

import (
	"encoding/json"
	"strings"

	"github.com/mediagate/mediagate"
)

// viduParams are the fields of the gateway's request for a video by Vidu.
type viduParams struct {
	Prompt      string      `json:"prompt"`
	ImageURLs   []string    `json:"image_urls"`
	Duration    json.Number `json:"duration"`
	Resolution  string      `json:"resolution"`
	AspectRatio string      `json:"aspect_ratio"`
	Seed        json.Number `json:"seed"`
	Audio       bool        `json:"audio"`
	Watermark   bool        `json:"watermark"`
}

// viduPixels holds the pixel sizes, by resolution and ratio. They come from a secondary source, and
// some of those for 540P and 1080P are derived from those for 720P.
var viduPixels = map[string]map[string]string{
	"540P":  {"16:9": "960*540", "9:16": "540*960", "1:1": "540*540", "4:3": "720*540", "3:4": "540*720"},
	"720P":  {"16:9": "1280*720", "9:16": "720*1280", "1:1": "720*720", "4:3": "960*720", "3:4": "720*960"},
	"1080P": {"16:9": "1920*1080", "9:16": "1080*1920", "1:1": "1080*1080", "4:3": "1440*1080", "3:4": "1080*1440"},
}

type (
	viduInput struct {
		Prompt string  `json:"prompt"`
		Media  []media `json:"media"`
	}
	viduParameters struct {
		Resolution string `json:"resolution"`
		Size       string `json:"size"` // selects the ratio
		Duration   int64  `json:"duration"`
		Audio      bool   `json:"audio"`
		Watermark  bool   `json:"watermark"`
		Seed       *int64 `json:"seed,omitempty"`
	}
)

func newVidu(job mediagate.Job) (*request, error) {
	p, err := decode[viduParams](job)
	if err != nil {
		return nil, err
	}
	in, out, err := p.write()
	if err != nil {
		return nil, err
	}
	return &request{Model: job.Upstream, Input: in, Parameters: out, path: videoPath, wantsWatermark: p.Watermark}, nil
}

func (p *viduParams) write() (in *viduInput, out *viduParameters, err error) {
	resolution := strings.ToUpper(p.Resolution)
	out = &viduParameters{
		Resolution: resolution, Size: viduPixels[resolution][p.AspectRatio], Audio: p.Audio, Watermark: p.Watermark,
	}
	if out.Size == "" {
		return nil, nil, invalid("aspect_ratio", "has no pixel size here")
	}
	if out.Duration, err = parseInteger("duration", p.Duration); err != nil {
		return nil, nil, err
	}
	if out.Seed, err = parseSeed(p.Seed); err != nil {
		return nil, nil, err
	}
	in = &viduInput{Prompt: p.Prompt}
	for _, link := range p.ImageURLs {
		in.Media = append(in.Media, media{Type: "image", URL: link})
	}
	return in, out, nil
}
