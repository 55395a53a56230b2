package catalog

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mediagate/mediagate"
)

// builtInModels is the catalog without a folder of its operator's; it never changes.
var builtInModels = sync.OnceValues(func() (*Catalog, error) { return Load("") })

// TestOpenAISizes checks that each size of each table makes a valid request, which reads as the
// same size again.
func TestOpenAISizes(t *testing.T) {
	t.Parallel()
	models, err := builtInModels()
	if err != nil {
		t.Fatal(err)
	}
	least := map[string]map[string]any{
		"gamma2.7-videoedit": {"video_urls": []any{"https://example.com/a.mp4"}},
		"beta-q3":            {"image_urls": []any{"https://example.com/a.png"}},
		"beta-q3-mix":        {"image_urls": []any{"https://example.com/a.png"}},
		"delta-02":           {"first_frame_image": "https://example.com/a.png"},
	}
	for _, m := range models.Models() {
		for _, o := range m.Operations() {
			if m.Type != mediagate.TypeVideo && m.Type != mediagate.TypeImage {
				continue
			}
			if o.openai == nil || len(o.openai.Sizes) == 0 {
				t.Errorf("%s has no sizes for OpenAI's clients", m.ID)
				continue
			}
			for size := range o.openai.Sizes {
				body := map[string]any{"model": m.ID, "prompt": "a boat", "size": size}
				if o.openai.Seconds != "" && !strings.HasPrefix(m.ID, "delta-02") {
					body["seconds"] = "8"
					if strings.HasPrefix(m.ID, "alpha-video-o1") || strings.HasPrefix(m.ID, "delta-2.3") {
						body["seconds"] = json.Number("5")
					}
				}
				maps.Copy(body, least[m.ID])
				ours, _, err := o.FromOpenAI(body, slices.Sorted(maps.Keys(body)))
				if err != nil {
					t.Errorf("%s at %s: %v", m.ID, size, err)
					continue
				}
				r, err := o.Accept(ours)
				if err != nil {
					t.Errorf("%s at %s: %v", m.ID, size, err)
					continue
				}
				if _, again := o.ToOpenAI(r.Params); again != size {
					t.Errorf("%s at %s reads as %q", m.ID, size, again)
				}
			}
		}
	}
}

func TestFromOpenAI(t *testing.T) {
	t.Parallel()
	models, err := builtInModels()
	if err != nil {
		t.Fatal(err)
	}
	video, _ := models.Model("alpha-v3")
	picture, _ := models.Model("theta-image-turbo")
	edit, _ := models.Model("gamma2.7-videoedit")
	zeta, _ := models.Model("zeta-3.1-flash-image-preview")
	for name, test := range map[string]struct {
		model *Model
		body  string
		want  string // our body, or empty
		param string // of the refusal
		says  string
	}{
		"seconds as text":        {video, `{"seconds":"7"}`, `{"duration":7}`, "", ""},
		"as a number":            {video, `{"seconds":7.0}`, `{"duration":7}`, "", ""},
		"as our own":             {video, `{"duration":7,"negative_prompt":"text"}`, `{"duration":7,"negative_prompt":"text"}`, "", ""},
		"a size":                 {video, `{"size":"1080x1920"}`, `{"aspect_ratio":"9:16","mode":"pro"}`, "", ""},
		"a picture for a list":   {video, `{"input_reference":"https://example.com/a.png"}`, `{"image_urls":["https://example.com/a.png"]}`, "", ""},
		"a picture's size":       {picture, `{"size":"2048x1360"}`, `{"resolution":"2K","size":"3:2"}`, "", ""},
		"our size":               {picture, `{"size":"3:2"}`, `{"size":"3:2"}`, "", ""},
		"our size beside pixels": {edit, `{"size":"16:9"}`, `{"size":"16:9"}`, "", ""},
		"one picture":            {picture, `{"n":1}`, `{}`, "", ""},
		"one, written otherwise": {picture, `{"n":1.0}`, `{}`, "", ""},
		"two pictures":           {picture, `{"n":2}`, "", "n", "not a field"},
		"a better picture":       {picture, `{"quality":"hd"}`, "", "quality", "quality must be auto, standard or medium"},
		"a style":                {picture, `{"style":"vivid"}`, "", "style", "not a field"},
		"a quality of a video":   {video, `{"quality":"auto"}`, "", "quality", "not a field"},
		"what changes nothing":   {picture, `{"user":"u","moderation":"low","background":"auto","quality":"medium","output_format":"png","stream":false,"partial_images":0.0,"size":"auto"}`, `{}`, "", ""},
		"empty texts":            {picture, `{"user":"","quality":"","size":""}`, `{}`, "", ""},
		"empty of a video":       {video, `{"seconds":"","size":"","input_reference":""}`, `{}`, "", ""},
		"a stream":               {picture, `{"stream":true}`, "", "stream", "stream must be false"},
		"pictures on the way":    {picture, `{"partial_images":1}`, "", "partial_images", "must be 0"},
		"another format":         {picture, `{"output_format":"webp"}`, "", "output_format", "must be png"},
		"a user by number":       {picture, `{"user":1}`, "", "user", "string"},
		"pictures to change":     {zeta, `{"image":["https://example.com/a.png","https://example.com/b.png"]}`, `{"image_urls":["https://example.com/a.png","https://example.com/b.png"]}`, "", ""},
		"a picture for theta":    {picture, `{"image":["https://example.com/a.png"]}`, "", "image", "cannot be chosen"},
		"the model's own auto":   {zeta, `{"size":"auto"}`, `{}`, "", ""},
		"seconds of a picture":   {picture, `{"seconds":"4"}`, "", "seconds", "cannot be chosen"},
		"a reference":            {picture, `{"input_reference":"https://example.com/a.png"}`, "", "input_reference", "cannot be chosen"},
		"half a second":          {video, `{"seconds":"4.5"}`, "", "seconds", "whole number"},
		"a word":                 {video, `{"seconds":"four"}`, "", "seconds", "whole number"},
		"true":                   {video, `{"seconds":true}`, "", "seconds", "whole number"},
		"both":                   {video, `{"seconds":"4","duration":4}`, "", "seconds", "say the same"},
		"size and mode":          {video, `{"size":"1280x720","mode":"std"}`, "", "size", "say the same"},
		"another size":           {video, `{"size":"1024x1024"}`, "", "size", "one of 1080x1080, 1080x1920"},
		"a size that is none":    {video, `{"size":"large"}`, "", "size", "one of"},
		"an unknown field":       {video, `{"remix":true}`, "", "remix", `"remix" is not a field`},
	} {
		o := test.model.Operations()[0]
		decoder := json.NewDecoder(strings.NewReader(test.body))
		decoder.UseNumber()
		var body map[string]any
		if err := decoder.Decode(&body); err != nil {
			t.Fatal(err)
		}
		ours, _, err := o.FromOpenAI(body, slices.Sorted(maps.Keys(body)))
		if test.want != "" {
			got, _ := json.Marshal(ours)
			if err != nil || string(got) != test.want {
				t.Errorf("%s: %s, %v, want %s", name, got, err, test.want)
			}
			continue
		}
		e, ok := errors.AsType[*mediagate.Error](err)
		if !ok || e.Kind != mediagate.KindInvalid || e.Param != test.param || !strings.Contains(e.Message, test.says) {
			t.Errorf("%s: %v, want one of %s that says %q", name, err, test.param, test.says)
		}
	}
}

// TestFromForm checks that the texts of a form get the types of the schema. A text of another
// type stays a text.
func TestFromForm(t *testing.T) {
	t.Parallel()
	models, err := builtInModels()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ model, body, want string }{
		"numbers":           {"gamma2.6", `{"seed":"7","duration":"5.0"}`, `{"duration":5.0,"seed":7}`},
		"truth values":      {"gamma2.6", `{"audio":"false","watermark":"true"}`, `{"audio":false,"watermark":true}`},
		"texts":             {"gamma2.6", `{"prompt":"7","negative_prompt":"true"}`, `{"negative_prompt":"true","prompt":"7"}`},
		"a list of one":     {"gamma2.6", `{"image_urls":"https://example.com/a.png"}`, `{"image_urls":["https://example.com/a.png"]}`},
		"within a list":     {"alpha-v3", `{"multi_prompt":[{"index":"1","prompt":"2","duration":"3"}]}`, `{"multi_prompt":[{"duration":3,"index":1,"prompt":"2"}]}`},
		"within an object":  {"alpha-v3", `{"metadata":{"reference":"7","mine":"8"}}`, `{"metadata":{"mine":"8","reference":"7"}}`},
		"what is no number": {"gamma2.6", `{"seed":"seven","duration":"0x5"}`, `{"duration":"0x5","seed":"seven"}`},
		"too large":         {"gamma2.6", `{"seed":"1e309"}`, `{"seed":"1e309"}`},
		"a truth in words":  {"gamma2.6", `{"audio":"yes"}`, `{"audio":"yes"}`},
		"nothing typed in":  {"gamma2.6", `{"prompt":"","seed":"","audio":"","image_urls":""}`, `{"prompt":""}`},
		"OpenAI's own":      {"theta-image-turbo", `{"n":"1","stream":"false","partial_images":"0","size":"1024x1024"}`, `{"n":1,"partial_images":0,"size":"1024x1024","stream":false}`},
		"an unknown field":  {"gamma2.6", `{"mine":"7"}`, `{"mine":"7"}`},
	} {
		m, _ := models.Model(test.model)
		var body map[string]any
		if err := json.Unmarshal([]byte(test.body), &body); err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(m.Operations()[0].FromForm(body)); err != nil || string(got) != test.want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, test.want)
		}
	}
}

// TestOpenAITable checks that errors of a table are reported when it is read.
func TestOpenAITable(t *testing.T) {
	t.Parallel()
	models, err := builtInModels()
	if err != nil {
		t.Fatal(err)
	}
	m, _ := models.Model("alpha-v3")
	table := &openAIFile{Seconds: "length", Image: "picture", Sizes: map[string]map[string]string{"big": {"mode": "std"}, "1x1": {"mode": "best", "colour": "red"}}}
	got := strings.Join(table.problems(m.Operations()[0].schema.shape), "\n")
	for _, want := range []string{"length is no field", "picture is no field", "big is not WIDTHxHEIGHT", "1x1: colour can never be that", "1x1: mode can never be that"} {
		if !strings.Contains(got, want) {
			t.Errorf("nothing says %q:\n%s", want, got)
		}
	}
}
