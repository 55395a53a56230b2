package kling

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mediagate/mediagate"
)

// The names of the operations in the paths of the newer generation.
const (
	newerText   = "text-to-video"
	newerFrames = "image-to-video"
	newerOmni   = "omni-video"
)

// newerModels maps the names of the models to those in the paths of the newer generation.
var newerModels = map[string]string{
	"kling-v3":         "kling-3.0",
	framesModel:        "kling-3.0-omni",
	"kling-video-o1":   o1,
	"kling-v2-6":       "kling-2.6",
	"kling-v2-5-turbo": "kling-2.5-turbo",
}

// o1 is the model that has neither multiple shots nor native audio.
const o1 = "kling-o1"

// newerRequest is the body of a submission to the newer generation. text-to-video takes a prompt,
// and the other operations take a list of contents.
type newerRequest struct {
	Prompt   string         `json:"prompt,omitempty"`
	Contents []newerContent `json:"contents,omitempty"`
	Settings newerSettings  `json:"settings"`
	Options  newerOptions   `json:"options"`
}

// newerContent is one input of a video. The prompt refers to it by its id, as @id.
type newerContent struct {
	Type      string `json:"type"`
	Text      string `json:"text,omitempty"`
	URL       string `json:"url,omitempty"`
	ElementID string `json:"element_id,omitempty"`
	ID        string `json:"id,omitempty"`
}

// newerSettings are always written, so that no default of the vendor applies. By default the vendor
// would divide the video into shots.
type newerSettings struct {
	MultiShot   *bool  `json:"multi_shot,omitempty"`
	Audio       string `json:"audio"`
	Resolution  string `json:"resolution"`
	AspectRatio string `json:"aspect_ratio,omitempty"`
	Duration    int    `json:"duration"`
}

type newerOptions struct {
	CallbackURL    string        `json:"callback_url,omitempty"`
	ExternalTaskID string        `json:"external_task_id"`
	WatermarkInfo  watermarkInfo `json:"watermark_info"`
}

var newerResolutions = map[string]string{"std": "720p", "pro": "1080p", "4k": "4k"}

// writeNewer translates the job for the newer generation. Each operation takes the same fields as
// in the older one.
func writeNewer(job mediagate.Job) (wire, error) {
	p, err := read(job, maxNewer)
	if err != nil {
		return wire{}, err
	}
	model := cmp.Or(newerModels[job.Upstream], job.Upstream)
	r := &newerRequest{Options: newerOptions{
		CallbackURL: job.CallbackURL, ExternalTaskID: job.ExternalID, WatermarkInfo: watermarkInfo{p.Watermark},
	}}
	if r.Settings, err = p.newerSettings(model); err != nil {
		return wire{}, err
	}
	endpoint := newerOmni
	switch {
	case job.Operation == opVideo, job.Operation == opBaseVideo:
		endpoint, err = r.setPlain(p)
	case job.Operation == opOmni && !isStoredInVendorForm(job):
		if err = p.writeReferencesText(); err == nil {
			err = r.setReferences(p)
		}
	default:
		if !isStoredInVendorForm(job) {
			if err = p.checkFrames(); err == nil {
				err = p.writeFramesText()
			}
		}
		if err == nil {
			err = r.setFramed(p)
		}
	}
	if err == nil {
		err = r.setPrompt(p, endpoint)
	}
	if err != nil {
		return wire{}, err
	}
	return wire{
		path: "/" + endpoint + "/" + model, body: r, at: place{endpoint: newerTasks, wantsWatermark: p.Watermark},
	}, nil
}

func (p *params) newerSettings(model string) (newerSettings, error) {
	seconds, err := parseInteger(p.Duration)
	if err != nil {
		return newerSettings{}, invalid("duration", "must be an integer")
	}
	s := newerSettings{Audio: "off", Resolution: newerResolutions[p.Mode], Duration: seconds}
	if s.Resolution == "" {
		return s, invalid("mode", "must be std, pro or 4k")
	}
	switch on := p.Audio != nil && *p.Audio; {
	case on && model == o1:
		return s, invalid("audio", "is not made by this model")
	case on:
		s.Audio = "native"
	}
	if model != o1 {
		multiShot := p.MultiShot != nil && *p.MultiShot
		s.MultiShot = &multiShot
	}
	return s, nil
}

// setPlain writes text alone, or frames and subjects by id.
func (r *newerRequest) setPlain(p *params) (endpoint string, err error) {
	if err := p.checkPlain(); err != nil {
		return "", err
	}
	if err := p.appendNegativePrompt(); err != nil {
		return "", err
	}
	if len(p.ImageURLs) == 0 {
		r.Settings.AspectRatio = p.AspectRatio
		return newerText, nil
	}
	r.addFrames(p)
	return newerFrames, r.addElements(p)
}

// setFramed writes images as frames, and the pictures of subjects as references.
func (r *newerRequest) setFramed(p *params) error {
	if p.NegativePrompt != "" {
		return invalid("negative_prompt", "is not supported here")
	}
	if len(p.ImageURLs) > len(frameTypes) {
		return invalid("image_urls", fmt.Sprintf("takes at most %d images here", len(frameTypes)))
	}
	if len(p.ImageURLs) == 0 { // otherwise the video has the ratio of the frame
		r.Settings.AspectRatio = p.AspectRatio
	}
	r.addFrames(p)
	return r.addElements(p)
}

// setReferences writes images and videos as references.
func (r *newerRequest) setReferences(p *params) error {
	r.Settings.AspectRatio = p.AspectRatio
	for i, link := range p.ImageURLs {
		r.addPicture(i+1, link)
	}
	for i, v := range p.VideoList {
		if p.Audio != nil && *p.Audio {
			return invalid("audio", "cannot be made for a request with a video")
		}
		kind := "base_video"
		if v.ReferType == "feature" {
			kind = "feature_video"
		}
		r.Contents = append(r.Contents, newerContent{Type: kind, URL: v.VideoURL, ID: fmt.Sprintf("video_%d", i+1)})
		if v.KeepOriginalSound == "yes" {
			r.Settings.Audio = "original"
		}
	}
	return r.addElements(p)
}

func (r *newerRequest) addFrames(p *params) {
	for i, link := range p.ImageURLs {
		r.Contents = append(r.Contents, newerContent{Type: []string{"first_frame", "last_frame"}[i], URL: link})
	}
}

func (r *newerRequest) addPicture(n int, link string) {
	r.Contents = append(r.Contents, newerContent{Type: "refer_image", URL: link, ID: fmt.Sprintf("image_%d", n)})
}

// addElements writes subjects by id as elements. For the other subjects it adds their pictures,
// numbered after the request's own images.
func (r *newerRequest) addElements(p *params) error {
	pictures, elements := len(p.ImageURLs), 0
	for i, e := range p.ElementList {
		if e.byName() {
			if len(e.Pictures) == 0 {
				return invalid(fmt.Sprintf("element_list[%d].name", i), "is not supported here; give element_id")
			}
			for _, link := range e.Pictures {
				pictures++
				r.addPicture(pictures, link)
			}
			continue
		}
		id, err := strconv.ParseInt(e.ElementID.String(), 10, 64)
		if err != nil {
			return invalid(fmt.Sprintf("element_list[%d].element_id", i), "must be an integer")
		}
		elements++
		r.Contents = append(r.Contents, newerContent{
			Type: "element", ElementID: strconv.FormatInt(id, 10), ID: fmt.Sprintf("element_%d", elements),
		})
	}
	return nil
}

// setPrompt writes the text that the vendor reads: the prompt, or the shots, which form one text in
// this generation.
func (r *newerRequest) setPrompt(p *params, endpoint string) error {
	field, text := "prompt", p.Prompt
	if p.hasCustomShots() {
		var err error
		if text, err = p.shotText(); err != nil {
			return err
		}
		field = "multi_prompt"
	}
	text = convertReferences(text)
	if utf8.RuneCountInString(text) > maxNewer {
		return invalid(field, fmt.Sprintf("must be at most %d characters in all, as the provider is told it", maxNewer))
	}
	if endpoint == newerText {
		r.Prompt = text
		return nil
	}
	r.Contents = append([]newerContent{{Type: "prompt", Text: text}}, r.Contents...)
	return nil
}

// shotText returns the shots in their order as one text, such as "shot 1, 5, a fox; shot 2, 3, a
// dog;" with durations in seconds. The vendor splits at semicolons, so a semicolon within a prompt
// becomes a full-width one.
func (p *params) shotText() (string, error) {
	type numbered struct {
		n    int
		text string
	}
	var shots []numbered
	for i, s := range p.MultiPrompt {
		n, err := parseInteger(s.Index)
		if err != nil {
			return "", invalid(fmt.Sprintf("multi_prompt[%d].index", i), "must be an integer")
		}
		seconds, err := parseInteger(s.Duration)
		if err != nil {
			return "", invalid(fmt.Sprintf("multi_prompt[%d].duration", i), "must be an integer")
		}
		words := strings.ReplaceAll(strings.TrimSpace(s.Prompt), ";", "；")
		shots = append(shots, numbered{n, fmt.Sprintf("shot %d, %d, %s;", n, seconds, words)})
	}
	slices.SortStableFunc(shots, func(a, b numbered) int { return a.n - b.n })
	texts := make([]string, len(shots))
	for i, s := range shots {
		texts[i] = s.text
	}
	return strings.Join(texts, " "), nil
}

var reference = regexp.MustCompile(`<<<((?:image|element|video)_[0-9]+)>>>`)

// convertReferences replaces each <<<image_1>>> by @image_1, the form of a reference in this
// generation. It adds a blank if a word touches the reference, because the word would become part
// of it.
func convertReferences(text string) string {
	var b strings.Builder
	start := 0
	for _, at := range reference.FindAllStringSubmatchIndex(text, -1) {
		before := text[start:at[0]]
		b.WriteString(before)
		if last, size := utf8.DecodeLastRuneInString(text[:at[0]]); size > 0 && inWord(last) {
			b.WriteByte(' ')
		}
		b.WriteString("@" + text[at[2]:at[3]])
		if next, size := utf8.DecodeRuneInString(text[at[1]:]); size > 0 && (inWord(next) || next == '<') {
			b.WriteByte(' ')
		}
		start = at[1]
	}
	return b.String() + text[start:]
}
