package kling_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/kling"
	"github.com/mediagate/mediagate/providers/providertest"
)

// sentSubjects is the part of a request that concerns its subjects: the texts, and how many
// pictures of each subject are left. The count is 0 for a subject by id.
type sentSubjects struct {
	Prompt   string
	Shots    []string
	Pictures []int
}

// sent submits a request and returns the body that the vendor got.
func sent(t *testing.T, operation, upstream, params string) (string, error) {
	t.Helper()
	vendor := providertest.NewVendor(t, suite().Accepted)
	job := suite().Job
	job.Operation, job.Upstream, job.Params = operation, upstream, json.RawMessage(params)
	_, err := suite().Open(t, vendor.URL, providers.Options{}).Submit(t.Context(), job)
	if said := kling.Supports(job, nil); (said == nil) != (err == nil) || said != nil && said.Error() != err.Error() {
		t.Errorf("Supports: %v, Submit: %v", said, err)
	}
	if err != nil {
		if n := len(vendor.Requests()); n != 0 {
			t.Errorf("%d requests, want none", n)
		}
		return "", err
	}
	return vendor.Requests()[0].Body, nil
}

// submitSubjects submits a request and returns how it shows its subjects.
func submitSubjects(t *testing.T, operation, fields string) (sentSubjects, error) {
	t.Helper()
	fields = `{` + fields + `}`
	body, err := sent(t, operation, "kling-x", fields)
	if err != nil {
		return sentSubjects{}, err
	}
	var given struct {
		Elements []struct{ Name string } `json:"element_list"`
	}
	if err := json.Unmarshal([]byte(fields), &given); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Prompt         string
		NegativePrompt *string                   `json:"negative_prompt"`
		MultiPrompt    []struct{ Prompt string } `json:"multi_prompt"`
		Images         []struct {
			Link string `json:"image_url"`
		} `json:"image_list"`
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if got.NegativePrompt != nil {
		t.Errorf("the vendor has no field negative_prompt here: %s", body)
	}
	s := sentSubjects{Prompt: got.Prompt}
	for _, shot := range got.MultiPrompt {
		s.Shots = append(s.Shots, shot.Prompt)
	}
	var links []string
	for _, image := range got.Images {
		links = append(links, image.Link)
	}
	for _, e := range given.Elements {
		n := 0
		for e.Name != "" && slices.Contains(links, pictureOf(e.Name, n+1)) {
			n++ // the first pictures are kept, in their order
		}
		s.Pictures = append(s.Pictures, n)
	}
	return s, nil
}

func pictureOf(name string, n int) string {
	return fmt.Sprintf("https://media.example.com/%s/%d.png", url.PathEscape(name), n)
}

func subjects(items ...string) string { return `"element_list":[` + strings.Join(items, ",") + `]` }

// named returns a subject with n pictures.
func named(name string, n int) string {
	pictures := make([]string, n)
	for i := range pictures {
		pictures[i] = quote(pictureOf(name, i+1))
	}
	return fmt.Sprintf(`{"name":%s,"description":"the %s","element_input_urls":[%s]}`, quote(name), name, strings.Join(pictures, ","))
}

// urls returns a list of n image links.
func urls(n int) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(`"https://media.example.com/%d.png"`, i)
	}
	return "[" + strings.Join(items, ",") + "]"
}

func TestSubjectsInTexts(t *testing.T) {
	t.Parallel()
	const (
		multi = `"multi_shot":true,"shot_type":"customize","multi_prompt":[{"index":1,"prompt":"@cat sits","duration":2},{"index":2,"prompt":"@dog and @cat run","duration":3}],`
		film  = `,"video_list":[{"video_url":"https://media.example.com/a.mp4"}]`
	)
	say := func(prompt string) string { return `"prompt":` + quote(prompt) + `,` }
	for name, tt := range map[string]struct {
		operation, fields string
		want              sentSubjects
	}{
		"one": {
			"omni_frames", say("@cat sits, @cat sleeps") + subjects(named("cat", 2)),
			sentSubjects{"<<<image_1>>> <<<image_2>>> (the cat) sits, <<<image_1>>> <<<image_2>>> sleeps", nil, []int{2}},
		},
		"after a first frame": {
			"omni_frames", say("@cat sits") + `"image_urls":` + urls(1) + `,` + subjects(named("cat", 3)),
			sentSubjects{"<<<image_2>>> <<<image_3>>> <<<image_4>>> (the cat) sits", nil, []int{3}},
		},
		"three of 4 pictures": {
			"omni_frames", say("@a @b @c") + subjects(named("a", 4), named("b", 4), named("c", 4)),
			sentSubjects{"<<<image_1>>> <<<image_2>>> <<<image_3>>> (the a) <<<image_4>>> <<<image_5>>> (the b) <<<image_6>>> <<<image_7>>> (the c)", nil, []int{3, 2, 2}},
		},
		"three, one of few pictures": {
			"omni_frames", say("@a @b @c") + subjects(named("a", 2), named("b", 4), named("c", 2)),
			sentSubjects{"<<<image_1>>> <<<image_2>>> (the a) <<<image_3>>> <<<image_4>>> <<<image_5>>> (the b) <<<image_6>>> <<<image_7>>> (the c)", nil, []int{2, 3, 2}},
		},
		"three beside two frames": {
			"omni_frames", say("@a @b @c") + `"image_urls":` + urls(2) + `,` + subjects(named("a", 4), named("b", 4), named("c", 4)),
			sentSubjects{"<<<image_3>>> <<<image_4>>> (the a) <<<image_5>>> <<<image_6>>> (the b) <<<image_7>>> (the c)", nil, []int{2, 2, 1}},
		},
		"beside one by id": {
			"omni_frames", say("@b and <<<element_1>>>") + subjects(named("b", 4), `{"element_id":7}`, named("c", 4)),
			sentSubjects{"<<<image_4>>> <<<image_5>>> <<<image_6>>> (the c) <<<image_1>>> <<<image_2>>> <<<image_3>>> (the b) and <<<element_1>>>", nil, []int{3, 0, 3}},
		},
		"own images and references": {
			"omni", say("@cat in <<<image_2>>>") + `"image_urls":` + urls(2) + `,` + subjects(named("cat", 2)),
			sentSubjects{"<<<image_3>>> <<<image_4>>> (the cat) in <<<image_2>>>", nil, []int{2}},
		},
		"own images without a reference": {
			"omni", say("@cat sits") + `"image_urls":` + urls(1) + `,` + subjects(named("cat", 2)),
			sentSubjects{"<<<image_1>>><<<image_2>>> <<<image_3>>> (the cat) sits", nil, []int{2}},
		},
		"a full list": {
			"omni", say("@a, @b <<<image_1>>>") + `"image_urls":` + urls(5) + `,` + subjects(named("a", 4), named("b", 4)),
			sentSubjects{"<<<image_6>>> (the a), <<<image_7>>> (the b) <<<image_1>>>", nil, []int{1, 1}},
		},
		"beside a video": {
			"omni", say("@a and @b") + subjects(named("a", 4), named("b", 4)) + film,
			sentSubjects{"<<<image_1>>> <<<image_2>>> (the a) and <<<image_3>>> <<<image_4>>> (the b)", nil, []int{2, 2}},
		},
		"beside a video and an image": {
			"omni", say("@a and @b <<<image_1>>>") + `"image_urls":` + urls(1) + `,` + subjects(named("a", 4), `{"element_id":7}`, named("b", 4)) + film,
			sentSubjects{"<<<image_2>>> (the a) and <<<image_3>>> (the b) <<<image_1>>>", nil, []int{1, 0, 1}},
		},
		"shots": {
			"omni_frames", say("@dog runs") + multi + subjects(named("cat", 2), named("dog", 2), named("owl", 2)),
			sentSubjects{"<<<image_3>>> <<<image_4>>> runs", []string{
				"<<<image_1>>> <<<image_2>>> (the cat) sits",
				"<<<image_3>>> <<<image_4>>> (the dog) and <<<image_1>>> <<<image_2>>> run",
			}, []int{2, 2, 2}},
		},
		"what to avoid": {
			"omni_frames", say("a boat ") + `"negative_prompt":" fog, @cat ",` + subjects(named("cat", 2), named("dog", 2)),
			sentSubjects{"<<<image_3>>> <<<image_4>>> (the dog) a boat\nAvoid: fog, <<<image_1>>> <<<image_2>>> (the cat)", nil, []int{2, 2}},
		},
		"what to avoid in shots": {
			"omni_frames", say("a boat") + `"negative_prompt":"fog",` + multi + subjects(named("cat", 2), named("dog", 2)),
			sentSubjects{"a boat", []string{
				"<<<image_1>>> <<<image_2>>> (the cat) sits\nAvoid: fog",
				"<<<image_3>>> <<<image_4>>> (the dog) and <<<image_1>>> <<<image_2>>> run\nAvoid: fog",
			}, []int{2, 2}},
		},
		"what to avoid, by id": {
			"omni_frames", say("a boat") + `"negative_prompt":"fog",` + subjects(`{"element_id":7}`),
			sentSubjects{"a boat\nAvoid: fog", nil, []int{0}},
		},
		"a blank to avoid": {
			"omni_frames", say("a boat") + `"negative_prompt":" ",` + subjects(`{"element_id":7}`),
			sentSubjects{"a boat", nil, []int{0}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := submitSubjects(t, tt.operation, tt.fields)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestMentions checks which words mention a subject, such as cat with image 1. The descriptions are
// left out, so that the texts stay short.
func TestMentions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		names        []string
		prompt, want string
	}{
		"whole prompt":             {[]string{"cat"}, "@cat", "#1"},
		"twice in a row":           {[]string{"cat"}, "@cat@cat", "#1#1"},
		"two in a row":             {[]string{"cat", "dog"}, "@cat@dog", "#1#2"},
		"of a longer word":         {[]string{"cat"}, "@catherine", "#1 @catherine"},
		"before a digit":           {[]string{"cat"}, "@cat2", "#1 @cat2"},
		"before an underline":      {[]string{"cat"}, "@cat_x", "#1 @cat_x"},
		"before an accent":         {[]string{"cat"}, "@cat\u0301", "#1 @cat\u0301"},
		"before punctuation":       {[]string{"cat"}, "@cat's, @cat. (@cat)", "#1's, #1. (#1)"},
		"a prefix of another":      {[]string{"cat", "catherine"}, "@catherine and @cat", "#2 and #1"},
		"the longer one first":     {[]string{"catherine", "cat"}, "@catherine and @cat", "#1 and #2"},
		"the longer name is whole": {[]string{"cat", "cat fish"}, "@cat fishes, @cat fish", "#1 fishes, #2"},
		"another case":             {[]string{"cat"}, "@Cat", "#1 @Cat"},
		"no at":                    {[]string{"cat"}, "cat", "#1 cat"},
		"an address":               {[]string{"cat"}, "tom@cat", "#1 tom@cat"},
		"two ats":                  {[]string{"cat"}, "@@cat", "@#1"},
		"blanks in the name":       {[]string{" old  cat "}, "the @old  cat", "the #1"},
		"a name of digits":         {[]string{"1", "12"}, "@12 @1 @123", "#2 #1 @123"},
		"a name of marks":          {[]string{"c++"}, "@c++x", "#1x"},
		"a name with an at":        {[]string{"@cat"}, "@@cat", "#1"},
		"Chinese runs on":          {[]string{"小明"}, "和@小明走进房间", "和#1走进房间"},
		"Chinese, the longer one":  {[]string{"小明", "小明明"}, "@小明明和@小明", "#2和#1"},
		"Latin in Chinese":         {[]string{"Tom"}, "让@Tom走", "让#1走"},
		"Korean runs on":           {[]string{"민수"}, "@민수가 달린다", "#1가 달린다"},
		"Japanese":                 {[]string{"マリ"}, "@マリは走る", "#1は走る"},
		"Cyrillic, of a word":      {[]string{"Том"}, "@Томас и @Том", "@Томас и #1"},
		"two unmentioned":          {[]string{"cat", "dog"}, "a boat", "#1 #2 a boat"},
		"one unmentioned":          {[]string{"cat", "dog"}, "@dog", "#1 #2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var items, pairs []string
			for i, name := range tt.names {
				// A description that looks like a reference is left out.
				items = append(items, strings.Replace(named(name, 2), "the ", "<<<image_9>>>", 1))
				pairs = append(pairs, fmt.Sprintf("#%d", i+1), fmt.Sprintf("<<<image_%d>>> <<<image_%d>>>", 2*i+1, 2*i+2))
			}
			got, err := submitSubjects(t, "omni_frames", `"prompt":`+quote(tt.prompt)+`,`+subjects(items...))
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.NewReplacer(pairs...).Replace(tt.want); got.Prompt != want {
				t.Errorf("%s\nwant %s", got.Prompt, want)
			}
		})
	}
}

// TestRoomForSubjects checks that references must fit into the text, while descriptions are left
// out if they do not fit.
func TestRoomForSubjects(t *testing.T) {
	t.Parallel()
	const two = "<<<image_1>>> <<<image_2>>>"
	fill := func(n int, used ...string) string { return strings.Repeat("語", n-len(strings.Join(used, ""))) }
	list := subjects(named("cat", 2))
	inShot := func(text string) string {
		return `"multi_shot":true,"shot_type":"customize","multi_prompt":[{"index":1,"duration":5,"prompt":` + quote(text) + `}],` + list
	}
	for name, tt := range map[string]struct {
		operation, fields string
		param             string // empty if accepted
		want              string // at the start of the text
	}{
		"mention fits":          {"omni_frames", `"prompt":` + quote("@cat"+fill(2500, two)) + `,` + list, "", two + "語"},
		"mention does not":      {"omni_frames", `"prompt":` + quote("@cat"+fill(2501, two)) + `,` + list, "prompt", ""},
		"description fits":      {"omni_frames", `"prompt":` + quote("@cat"+fill(2500, two, " (the cat)")) + `,` + list, "", two + " (the cat)語"},
		"description does not":  {"omni_frames", `"prompt":` + quote("@cat"+fill(2501, two, " (the cat)")) + `,` + list, "", two + "語"},
		"in front, fits":        {"omni_frames", `"prompt":` + quote(fill(2500, two, " (the cat) ")) + `,` + list, "", two + " (the cat) 語"},
		"in front, bare":        {"omni_frames", `"prompt":` + quote(fill(2501, two, " (the cat) ")) + `,` + list, "", two + " 語"},
		"in front, no room":     {"omni_frames", `"prompt":` + quote(fill(2501, two, " ")) + `,` + list, "", "語"},
		"beside an image of o1": {"omni", `"prompt":` + quote("@cat"+fill(2501, "<<<image_1>>>", two)) + `,"image_urls":` + urls(1) + `,` + list, "prompt", ""},
		"in a shot, fits":       {"omni_frames", inShot("@cat" + fill(512, two)), "", two + "語"},
		"in a shot, does not":   {"omni_frames", inShot("@cat" + fill(513, two)), "multi_prompt[0].prompt", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := submitSubjects(t, tt.operation, tt.fields)
			if tt.param != "" {
				var e *mediagate.Error
				if !errors.As(err, &e) || e.Kind != mediagate.KindInvalid || e.Param != tt.param || !strings.Contains(e.Message, "the names of element_list") {
					t.Errorf("submitSubjects: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if text := strings.Join(append(got.Shots, got.Prompt), ""); !strings.HasPrefix(text, tt.want) {
				t.Errorf("%.60s…, want %s", text, tt.want)
			}
		})
	}
}

// TestAdditionsMustFit checks that added text counts against the vendor's limits.
func TestAdditionsMustFit(t *testing.T) {
	t.Parallel()
	const known = `"element_list":[{"element_id":1}]`
	fill := func(n int) string { return quote(strings.Repeat("語", n)) }
	inShot := func(text string) string {
		return `"multi_shot":true,"shot_type":"customize","multi_prompt":[{"index":1,"duration":5,"prompt":` + text + `}],`
	}
	const avoid, first = "\nAvoid: xyz", "<<<image_1>>>"
	for name, tc := range map[string]struct{ operation, fields, want string }{
		"words to avoid": {"omni_frames", `"negative_prompt":"xyz","prompt":` + fill(2500-len(avoid)) + `,` + known, ""},
		"words to avoid, 1 over": {
			"omni_frames", `"negative_prompt":"xyz","prompt":` + fill(2501-len(avoid)) + `,` + known,
			"prompt must be a string of at most 2500 characters, with the negative_prompt that is added to it",
		},
		"words to avoid in a shot": {"omni_frames", `"negative_prompt":"xyz","prompt":` + fill(2500) + `,` + inShot(fill(512-len(avoid))) + known, ""},
		"words to avoid in a shot, 1 over": {
			"omni_frames", `"negative_prompt":"xyz","prompt":"a",` + inShot(fill(513-len(avoid))) + known,
			"multi_prompt[0].prompt must be a string of at most 512 characters, with the negative_prompt that is added to it",
		},
		"a reference": {"omni", `"image_urls":` + urls(1) + `,"prompt":` + fill(2500-len(first)), ""},
		"a reference, 1 over": {
			"omni", `"image_urls":` + urls(1) + `,"prompt":` + fill(2501-len(first)),
			"prompt must be a string of at most 2500 characters, with the <<<image_1>>> that is put in front when it refers to no item of image_urls",
		},
		"subjects beside a video": {"omni", subjects(named("a", 2), named("b", 2)) + `,"image_urls":` + urls(2) + `,"video_list":[{"video_url":"https://a.example.com/v"}]`, ""},
		"subjects beside a video, 1 over": {
			"omni", subjects(named("a", 2), named("b", 2)) + `,"image_urls":` + urls(3) + `,"video_list":[{"video_url":"https://a.example.com/v"}]`,
			"element_list has more subjects than can be shown beside the rest: a picture of each must fit",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := submitSubjects(t, tc.operation, tc.fields)
			var e *mediagate.Error
			if errors.As(err, &e); (tc.want == "") != (err == nil) || err != nil && e.Message != tc.want {
				t.Errorf("submitSubjects: %v, want %q", err, tc.want)
			}
		})
	}
}

// TestReferenceIsPutInFront checks that a prompt without a reference gets one to the first image.
func TestReferenceIsPutInFront(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ fields, want string }{
		"images, no reference":     {`"prompt":"a boat","image_urls":` + urls(2), "<<<image_1>>>a boat"},
		"images, a reference":      {`"prompt":"a boat <<<image_2>>>","image_urls":` + urls(2), "a boat <<<image_2>>>"},
		"no image":                 {`"prompt":"a boat"`, "a boat"},
		"something else in angles": {`"prompt":"<<<video_1>>>","image_urls":` + urls(1), "<<<image_1>>><<<video_1>>>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := submitSubjects(t, "omni", tc.fields)
			if err != nil || got.Prompt != tc.want {
				t.Errorf("submitted %q, %v, want %q", got.Prompt, err, tc.want)
			}
		})
	}
}

// TestStoredInTheVendorsWords checks that a request which was stored in the vendor's form is sent
// unchanged.
func TestStoredInTheVendorsWords(t *testing.T) {
	t.Parallel()
	dog := `{"name":"dog","description":"the friend of @cat","element_input_urls":["https://a.example.com/dog.png"]}`
	cat := `{"name":"cat","description":"a cat","element_input_urls":["https://a.example.com/cat.png"]}`
	for name, tc := range map[string]struct{ upstream, fields string }{
		"references":               {"kling-video-o1", `{"prompt":"<<<image_1>>> (the friend of @cat) and <<<image_2>>> (a cat)",` + subjects(dog, cat) + `}`},
		"references, one not told": {"kling-video-o1", `{"prompt":"<<<image_2>>> (a cat)",` + subjects(dog, cat) + `}`},
		"frames":                   {"kling-v3-omni", `{"prompt":"<<<image_1>>> (the friend of @cat) and <<<image_2>>> (a cat)",` + subjects(dog, cat) + `}`},
		"frames, no room":          {"kling-v3-omni", `{"prompt":"a boat",` + subjects(dog, cat) + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, err := sent(t, "omni", tc.upstream, tc.fields)
			if err != nil {
				t.Fatal(err)
			}
			var given, got struct{ Prompt string }
			if err := errors.Join(json.Unmarshal([]byte(tc.fields), &given), json.Unmarshal([]byte(body), &got)); err != nil {
				t.Fatal(err)
			}
			if got.Prompt != given.Prompt {
				t.Errorf("sent %q, stored %q", got.Prompt, given.Prompt)
			}
		})
	}
}
