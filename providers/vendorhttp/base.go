package vendorhttp

import (
	"encoding/json"
	"slices"

	"github.com/mediagate/mediagate"
)

// Base is a request of the base contract, which all models without a catalog entry share. The
// vendor chooses the values of absent fields.
type Base struct {
	Prompt      string      `json:"prompt"`
	ImageURLs   []string    `json:"image_urls"`
	Duration    json.Number `json:"duration"`
	Resolution  string      `json:"resolution"`
	Size        string      `json:"size"`
	AspectRatio string      `json:"aspect_ratio"`
	N           json.Number `json:"n"`
	Seed        json.Number `json:"seed"`
}

// DecodeBase reads a job of the base contract. fields are those that the operation takes. Every
// operation also takes n = 1, because a request without n makes one result, too.
func DecodeBase(job mediagate.Job, fields []string) (Base, error) {
	var b Base
	if err := DecodeParams(job.Params, &b, append([]string{"n"}, fields...)...); err != nil {
		return Base{}, err
	}
	if b.N != "" && b.N != "1" && !slices.Contains(fields, "n") {
		return Base{}, unknownField("n")
	}
	return b, nil
}
