package dashscope

import (
	"slices"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
)

// The names of the operations.
const (
	opImage     = "image"
	opVideo     = "video"
	opVideoV2   = "video_v2"
	opEdit      = "edit"
	opKling     = "kling"
	opKlingOmni = "kling_omni"
	opVidu      = "vidu"
)

const (
	imagePath = "/services/aigc/multimodal-generation/generation"
	videoPath = "/services/aigc/video-generation/video-synthesis"
)

const (
	// imageTimeout bounds the submission of an image, which lasts as long as the generation.
	imageTimeout = 150 * time.Second
	// videoTimeout bounds a submission that starts a job.
	videoTimeout = 30 * time.Second
)

// writers holds the functions that translate the request of a job, by operation.
var writers = map[string]func(mediagate.Job) (*request, error){
	opImage: newImage, opVideo: newVideo, opVideoV2: newVideoV2, opEdit: newEdit,
	opBaseImage: newBaseImage, opBaseVideo: newBaseVideo, opKling: newKling, opKlingOmni: newKlingOmni, opVidu: newVidu,
}

// isSynchronous reports whether the answer to the submission holds the result.
func isSynchronous(operation string) bool { return operation == opImage || operation == opBaseImage }

// Description describes the adapter: its credentials and its operations.
func Description() providers.Description {
	wan := []string{
		"prompt", "image_urls", "image_with_roles", "video_urls", "duration", "resolution", "aspect_ratio",
		"negative_prompt", "audio", "prompt_extend", "watermark", "seed",
	}
	kling := []string{
		"prompt", "mode", "duration", "aspect_ratio", "image_urls", "watermark", "audio",
		"multi_shot", "shot_type", "multi_prompt",
	}
	video := func(fields []string) providers.Operation {
		return providers.Operation{Fields: fields, Media: "video", Submit: videoTimeout, Cancel: true}
	}
	newer := video(wan)
	newer.Idle = []string{"audio"}
	base := video(baseVideoFields)
	base.Base = true
	return providers.Description{
		Credentials: []string{"api_key"},
		Operations: map[string]providers.Operation{
			opImage: {
				Fields: []string{"prompt", "size", "resolution", "prompt_extend"},
				Media:  "image", Sync: true, Submit: imageTimeout,
			},
			opBaseImage: {Fields: baseImageFields, Media: "image", Sync: true, Submit: imageTimeout, Base: true},

			opBaseVideo: base,

			opVideo:   video(wan),
			opVideoV2: newer,
			opEdit: video([]string{
				"video_urls", "prompt", "negative_prompt", "image_urls", "resolution", "duration", "size",
				"prompt_extend", "watermark", "seed", "metadata",
			}),
			opKling:     video(kling),
			opKlingOmni: video(append(slices.Clip(kling), "element_list")),
			opVidu: video([]string{
				"prompt", "image_urls", "duration", "resolution", "aspect_ratio", "seed", "audio", "watermark",
			}),
		},
	}
}
