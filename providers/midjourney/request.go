package midjourney

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/inline"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// The limits of images in a request.
const (
	maxPromptImages = 5
	minBlendImages  = 2
	maxBlendImages  = 4
)

// The vendor's bots.
const (
	botMidjourney = "MID_JOURNEY"
	botNiji       = "NIJI_JOURNEY"
)

// params are the fields of the gateway's request, for all operations.
type params struct {
	Prompt         string          `json:"prompt"`
	ImageURLs      []string        `json:"image_urls"`
	MaskURL        string          `json:"mask_url"`
	Dimensions     string          `json:"dimensions"`
	Speed          string          `json:"speed"`
	Size           string          `json:"size"`
	Version        vendorhttp.Text `json:"version"` // may also be a number
	Seed           json.Number     `json:"seed"`
	NegativePrompt string          `json:"negative_prompt"`
	Stylize        json.Number     `json:"stylize"`
	Chaos          json.Number     `json:"chaos"`
	Weird          json.Number     `json:"weird"`
	Tile           bool            `json:"tile"`
}

// request is the body of a submission. The images come last; see inline.Images.Request.
type request struct {
	TaskID     string   `json:"taskId,omitempty"`
	CustomID   string   `json:"customId,omitempty"`
	Action     string   `json:"action,omitempty"`
	Index      int      `json:"index,omitempty"`
	Prompt     string   `json:"prompt,omitempty"`
	Dimensions string   `json:"dimensions,omitempty"`
	BotType    string   `json:"botType,omitempty"`
	State      string   `json:"state,omitempty"` // our id, which the proxy shows with the job
	NotifyHook string   `json:"notifyHook,omitempty"`
	Images     []string `json:"base64Array,omitempty"`
	Image      string   `json:"base64,omitempty"`
	Mask       string   `json:"maskBase64,omitempty"`
}

// wire is a request to the proxy: its path, the images to fetch, and the function that writes its
// body.
type wire struct {
	path     string
	images   []inline.Image
	document func([]inline.Blob) any
}

// write translates the job into a request. Its errors are of KindInvalid and name the field, or of
// KindNotFound for an unknown operation.
func write(job mediagate.Job, dialect string) (*wire, error) {
	known, ok := fields[job.Operation]
	if !ok {
		return nil, mediagate.Errorf(mediagate.KindNotFound, "operation %q is unknown here", job.Operation)
	}
	p := new(params)
	if err := vendorhttp.DecodeParams(job.Params, p, known...); err != nil {
		return nil, err
	}
	at, err := p.path(job.Operation, dialect)
	if err != nil {
		return nil, err
	}
	r := request{State: job.ExternalID, NotifyHook: job.CallbackURL}
	w := &wire{document: func(images []inline.Blob) any { return r.withImages(job.Operation, images) }}
	switch job.Operation {
	case opImagine:
		err = r.setImagine(p, dialect)
	case opBlend:
		err = r.setBlend(p, dialect)
	case opDescribe:
		err = r.setDescribe(p)
	case opAction:
		at, err = r.setAction(job.Source, at, dialect)
	default:
		err = r.setModal(p, job.Source, dialect)
	}
	if err != nil {
		return nil, err
	}
	w.path = at
	for i, link := range p.ImageURLs {
		w.images = append(w.images, inline.Image{Field: fmt.Sprintf("image_urls[%d]", i), URL: link})
	}
	if p.MaskURL != "" {
		w.images = append(w.images, inline.Image{Field: "mask_url", URL: p.MaskURL})
	}
	return w, nil
}

// withImages returns the request with these images, each as a data URI.
func (r request) withImages(operation string, images []inline.Blob) request {
	for _, img := range images {
		uri := "data:" + img.MimeType + ";base64," + img.Data
		switch operation {
		case opDescribe:
			r.Image = uri
		case opModal:
			r.Mask = uri
		default:
			r.Images = append(slices.Clip(r.Images), uri)
		}
	}
	return r
}

var speeds = []string{"relax", "fast", "turbo"}

// path returns the path of an operation. In trueai the speed is part of the path. novicezk takes
// the speed in the prompt of an imagine. Its other operations run at the speed of the account,
// which by Midjourney's default is fast.
func (p *params) path(operation, dialect string) (string, error) {
	if !slices.Contains(speeds, p.Speed) {
		return "", mediagate.Invalid("speed", "speed must be relax, fast or turbo")
	}
	at := "/mj/submit/" + operation
	if dialect == dialectTrueai {
		return "/mj-" + p.Speed + at, nil
	}
	if operation != opImagine && p.Speed != "fast" {
		return "", mediagate.Invalid("speed", "speed must be fast here")
	}
	return at, nil
}

func (r *request) setImagine(p *params, dialect string) error {
	if len(p.ImageURLs) > maxPromptImages {
		return mediagate.Invalid("image_urls", "image_urls must be an array of at most %d items", maxPromptImages)
	}
	prompt, err := p.buildPrompt(dialect)
	if err != nil {
		return err
	}
	r.Prompt = prompt
	if dialect == dialectTrueai {
		r.BotType = botMidjourney
		if p.Version == niji {
			r.BotType = botNiji
		}
	}
	return nil
}

var dimensions = []string{"PORTRAIT", "SQUARE", "LANDSCAPE"}

func (r *request) setBlend(p *params, dialect string) error {
	switch n := len(p.ImageURLs); {
	case n < minBlendImages || n > maxBlendImages:
		return mediagate.Invalid("image_urls",
			"image_urls must be an array of %d to %d items", minBlendImages, maxBlendImages)
	case !slices.Contains(dimensions, p.Dimensions):
		return mediagate.Invalid("dimensions", "dimensions must be %s", strings.Join(dimensions, ", "))
	}
	r.Dimensions = p.Dimensions
	if dialect == dialectTrueai {
		r.BotType = botMidjourney
	}
	return nil
}

func (r *request) setDescribe(p *params) error {
	if len(p.ImageURLs) != 1 {
		return mediagate.Invalid("image_urls", "image_urls must be an array of 1 item")
	}
	return nil
}

// sourceJobID returns the vendor's id of the earlier job that a request works on. Only the proxy
// that made the job knows it.
func sourceJobID(s *mediagate.Source) (string, error) {
	switch {
	case s == nil || s.Ref.JobID == "":
		return "", mediagate.Invalid("task_id", "task_id names no job of the provider's")
	case !s.Own:
		return "", mediagate.Invalid("task_id", "task_id must name a task that the same account of the provider made")
	}
	return s.Ref.JobID, nil
}

// setAction writes the press of a button, and returns the path of the request.
func (r *request) setAction(s *mediagate.Source, at, dialect string) (string, error) {
	id, err := sourceJobID(s)
	if err != nil {
		return "", err
	}
	if !isPressable(s.Button) {
		return "", mediagate.Invalid("custom_id", "custom_id %s is not supported here", mediagate.Quote(s.Button))
	}
	r.TaskID = id
	if dialect == dialectTrueai {
		r.CustomID = s.Button
		return at, nil
	}
	action, index, ok := parseClassicButton(s.Button)
	if !ok {
		return "", mediagate.Invalid("custom_id", "custom_id %s is not supported here", mediagate.Quote(s.Button))
	}
	r.Action, r.Index = action, index
	return "/mj/submit/change", nil
}

// setModal writes the mask or words that a job waits for.
func (r *request) setModal(p *params, s *mediagate.Source, dialect string) error {
	if dialect != dialectTrueai {
		return mediagate.Invalid("task_id", "task_id names a task that cannot be completed here")
	}
	id, err := sourceJobID(s)
	if err != nil {
		return err
	}
	if strings.TrimSpace(p.Prompt) == "" && p.MaskURL == "" {
		return mediagate.Invalid("prompt", "prompt or mask_url is required")
	}
	r.TaskID, r.Prompt = id, p.Prompt
	return nil
}

var sizePattern = regexp.MustCompile(`^[0-9]{1,2}:[0-9]{1,2}$`)
