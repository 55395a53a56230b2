package kling

import (
	"slices"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
)

// The operations. Two of them use the same endpoint, which reads its images
// as frames or as references.
const (
	opVideo      = "video"
	opOmniFrames = "omni_frames"
	opOmni       = "omni"
)

// The endpoints of the older generation that we use.
const (
	text2video  = "text2video"
	image2video = "image2video"
	omniVideo   = "omni-video"
)

// endpoints names those that each operation may use.
var endpoints = map[string][]string{
	opVideo:      {text2video, image2video},
	opBaseVideo:  {text2video, image2video},
	opOmniFrames: {omniVideo},
	opOmni:       {omniVideo},
}

// framesModel is the upstream whose images are frames. Its requests were of
// the operation omni, and already in the vendor's words, when they were stored
// before omni_frames existed.
const framesModel = "kling-v3-omni"

// worded says that a job's request was stored in the vendor's words.
func worded(job mediagate.Job) bool {
	return job.Operation == opOmni && job.Upstream == framesModel
}

// submitTimeout bounds a submission, of all operations.
const submitTimeout = 30 * time.Second

// Description is what the adapter says of itself.
func Description() providers.Description {
	common := []string{"prompt", "mode", "duration", "aspect_ratio", "image_urls", "element_list", "watermark", "audio"}
	film := slices.Concat(common, []string{"negative_prompt", "multi_shot", "shot_type", "multi_prompt"})
	operation := func(fields []string) providers.Operation {
		return providers.Operation{Fields: fields, Media: "video", Find: true, Batch: newerBatch, Callback: true, Submit: submitTimeout}
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

// fieldsOf are those that a job may have.
func fieldsOf(job mediagate.Job) []string {
	name := job.Operation
	if worded(job) {
		name = opOmniFrames
	}
	return Description().Operations[name].Fields
}
