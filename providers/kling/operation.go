package kling

import (
	"slices"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
)

// The names of the operations. opOmniFrames and opOmni use the same endpoint, with images as frames
// or as references.
const (
	opVideo      = "video"
	opOmniFrames = "omni_frames"
	opOmni       = "omni"
)

// The endpoints of the older generation that the adapter uses.
const (
	text2video  = "text2video"
	image2video = "image2video"
	omniVideo   = "omni-video"
)

// endpoints holds the endpoints that each operation may use.
var endpoints = map[string][]string{
	opVideo:      {text2video, image2video},
	opBaseVideo:  {text2video, image2video},
	opOmniFrames: {omniVideo},
	opOmni:       {omniVideo},
}

// framesModel is the upstream whose images are frames. Before omni_frames existed, its requests
// were stored under the operation omni, and already in the vendor's form.
const framesModel = "kling-v3-omni"

// isStoredInVendorForm reports whether the job's request was stored in the vendor's form.
func isStoredInVendorForm(job mediagate.Job) bool {
	return job.Operation == opOmni && job.Upstream == framesModel
}

// submitTimeout bounds a submission of any operation.
const submitTimeout = 30 * time.Second

// Description describes the adapter: its credentials, options and operations.
func Description() providers.Description {
	common := []string{"prompt", "mode", "duration", "aspect_ratio", "image_urls", "element_list", "watermark", "audio"}
	film := slices.Concat(common, []string{"negative_prompt", "multi_shot", "shot_type", "multi_prompt"})
	operation := func(fields []string) providers.Operation {
		return providers.Operation{
			Fields: fields, Media: "video", Find: true, Batch: newerBatch, Callback: true, Submit: submitTimeout,
		}
	}
	base := operation(baseFields())
	base.Base = true
	return providers.Description{
		Credentials: []string{"access_key", "secret_key", "api_key"},
		Options:     []string{"generation"},
		Operations: map[string]providers.Operation{
			opVideo:      operation(film),
			opBaseVideo:  base,
			opOmniFrames: operation(film),
			opOmni:       operation(slices.Concat(common, []string{"video_list"})),
		},
	}
}

// fieldsOf returns the fields that the job may have.
func fieldsOf(job mediagate.Job) []string {
	name := job.Operation
	if isStoredInVendorForm(job) {
		name = opOmniFrames
	}
	return Description().Operations[name].Fields
}
