package googleapi

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

const (
	// bodyMax is the most that a request with its frames may hold.
	bodyMax = 20 << 20
	// samplesMax is the most videos that a request may ask for.
	samplesMax = 4
	// seedMax is the largest seed.
	seedMax = 1<<32 - 1
)

// Surface is one of the two ways to Veo: what it takes beside what both do.
type Surface struct {
	Models     []string
	Parameters []string // that the other one lacks
	Sound      bool     // always on; else it must be said
	NameOf     func(model, id string) string
}

// Has reports whether the model is one of the surface's.
func (s Surface) Has(model string) bool { return slices.Contains(s.Models, model) }

// The parameters that both surfaces take.
var common = []string{
	"sampleCount", "durationSeconds", "aspectRatio", "resolution", "negativePrompt", "personGeneration", "enhancePrompt",
}

// Submit starts an operation.
func (s Surface) Submit(v *kernel.Service, r *http.Request, a kernel.Account, model string) kernel.Reply {
	in, err := kernel.ReadObject(r, bodyMax)
	if err != nil {
		return Refuse(kernel.CallSubmit, InvalidArgument, "Invalid request payload: "+err.Error())
	}
	j := s.read(in)
	if in.Err() != nil {
		return Refuse(kernel.CallSubmit, InvalidArgument, in.Err().Error())
	}
	j.ID, j.Endpoint, j.Model = kernel.UUID(), model, model
	return v.Take(a, j, kernel.Refusals{
		Rejected:  Refuse(kernel.CallSubmit, InvalidArgument, "instances[0].prompt: "+kernel.DirectiveTrouble(j.Prompt)),
		Moderated: Refuse(kernel.CallSubmit, InvalidArgument, "The prompt could not be submitted. It violates the vendor's Responsible AI practices. Support codes: 29310472"),
		Broken:    Refuse(kernel.CallSubmit, Internal, Broken),
		Busy:      Refuse(kernel.CallSubmit, ResourceExhausted, "Quota exceeded for long running requests of the model."),
	}, func(made *kernel.Job) kernel.Reply {
		return kernel.Reply{Kind: kernel.CallSubmit, Status: http.StatusOK, Body: map[string]any{"name": s.NameOf(model, made.ID)}}
	})
}

// read reads a request and makes its job.
func (s Surface) read(in *kernel.Object) *kernel.Job {
	in.Only("instances", "parameters")
	instances := in.Objects("instances", 1)
	if len(instances) != 1 {
		in.Fail("instances", "exactly one instance is required")
		return nil
	}
	one := instances[0]
	one.Only("prompt", "image", "lastFrame")
	prompt := one.Text("prompt")
	if strings.TrimSpace(prompt) == "" {
		one.Fail("prompt", "is required")
	}
	if one.Has("lastFrame") && !one.Has("image") {
		one.Fail("lastFrame", "needs image")
	}
	for _, name := range []string{"image", "lastFrame"} {
		if one.Has(name) {
			frame(one.Nested(name))
		}
	}
	p := in.Nested("parameters")
	for _, name := range []string{"seed", "generateAudio", "resizeMode", "storageUri"} {
		if p.Has(name) && !slices.Contains(s.Parameters, name) {
			p.Fail(name, "isn't supported by this model")
		}
	}
	p.Only(slices.Concat(common, s.Parameters)...)
	return s.job(p, prompt, one.Has("image"))
}

// frame opens a picture of the request.
func frame(in *kernel.Object) {
	in.Only("bytesBase64Encoded", "mimeType")
	kind := in.Word("mimeType", "", "image/png", "image/jpeg", "image/webp")
	raw, err := base64.StdEncoding.DecodeString(in.Text("bytesBase64Encoded"))
	if err != nil || len(raw) == 0 {
		in.Fail("bytesBase64Encoded", "Base64 decoding failed")
		return
	}
	if picture, ok := kernel.ReadPicture(raw); !ok || "image/"+picture.Format != kind {
		in.Fail("bytesBase64Encoded", "is no %s picture", kind)
	}
}

// job reads the parameters.
func (s Surface) job(p *kernel.Object, prompt string, framed bool) *kernel.Job {
	count, seconds := int64(1), int64(8)
	if p.Has("sampleCount") {
		count = p.Integer("sampleCount", 1, samplesMax)
	}
	if p.Has("durationSeconds") {
		if seconds = p.Integer("durationSeconds", 4, 8); seconds%2 != 0 {
			p.Fail("durationSeconds", "must be 4, 6 or 8")
		}
	}
	ratio := p.Word("aspectRatio", "16:9", "16:9", "9:16")
	resolution := p.Word("resolution", "720p", "720p", "1080p", "4k")
	if resolution != "720p" && seconds != 8 {
		p.Fail("durationSeconds", "must be 8 for %s", resolution)
	}
	p.Text("negativePrompt")
	p.Word("personGeneration", "", "allow_adult", "dont_allow", "allow_all")
	if p.Has("enhancePrompt") && !p.Flag("enhancePrompt") {
		p.Fail("enhancePrompt", "cannot be disabled for this model")
	}
	sound := s.Sound
	if !s.Sound {
		if !p.Has("generateAudio") {
			p.Fail("generateAudio", "is required")
		}
		sound = p.Flag("generateAudio")
	}
	if p.Has("seed") {
		p.Integer("seed", 0, seedMax)
	}
	if p.Has("resizeMode") && !framed {
		p.Fail("resizeMode", "is for an image only")
	}
	p.Word("resizeMode", "", "pad", "crop")
	storage := p.Text("storageUri")
	if p.Has("storageUri") && !strings.HasPrefix(storage, "gs://") {
		p.Fail("storageUri", "must be a gs:// URI")
	}
	short := map[string]int{"720p": 720, "1080p": 1080, "4k": 2160}[resolution]
	width, height := short*16/9, short
	if ratio == "9:16" {
		width, height = height, width
	}
	return &kernel.Job{
		Prompt: prompt,
		Media:  kernel.Media{Kind: "video", Width: width, Height: height, Seconds: int(seconds), Sound: sound},
		Detail: map[string]string{"samples": strconv.Itoa(int(count)), "storage": storage},
	}
}

// Made are how many videos a job has made, and how many of them are held back.
func Made(j *kernel.Job) (delivered, filtered int) {
	count, _ := strconv.Atoi(j.Detail["samples"])
	if j.Directive.Fails(kernel.AtPoll) && j.Directive.Fail == kernel.FailModeration {
		return 0, count
	}
	filtered = min(count, j.Directive.Filtered)
	return count - filtered, filtered
}

// Reasons are told of videos that are held back.
func Reasons(filtered int) []string {
	return slices.Repeat([]string{
		"The video could not be shown since it violates the vendor's usage guidelines. Support codes: 58061214",
	}, filtered)
}

// Poll answers about an operation; end makes the response of one that is done
// and has not failed.
func (s Surface) Poll(v *kernel.Service, j *kernel.Job, end func(op map[string]any) kernel.Reply) kernel.Reply {
	if j == nil {
		return Refuse(kernel.CallPoll, NotFound, "Operation was not found.")
	}
	spoiled := v.Spoiled(j)
	op := map[string]any{"name": s.NameOf(j.Model, j.ID)}
	d := j.Directive
	var rep kernel.Reply
	switch state := j.State(v.Now()); {
	case spoiled:
		rep = Refuse(kernel.CallPoll, Internal, Broken)
	case state == kernel.StateFailed && d.Fail != kernel.FailModeration:
		op["done"], op["error"] = true, map[string]any{"code": 13, "message": "Video generation failed. Please try again."}
	case state == kernel.StateFailed, state == kernel.StateSucceeded:
		op["done"] = true
		rep = end(op)
	}
	if rep.Status == 0 {
		rep = kernel.Reply{Status: http.StatusOK, Body: op}
	}
	rep.Kind, rep.Job = kernel.CallPoll, j.ID
	return rep
}
