package catalog_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/billing"
	"github.com/mediagate/mediagate/catalog"
)

// shown is what a request with subjects became: its texts, and how many
// pictures of each subject are left; 0 for one by id.
type shown struct {
	Prompt   string
	Shots    []string
	Pictures []int
}

func shownBy(t *testing.T, params json.RawMessage) shown {
	t.Helper()
	var p struct {
		Prompt      string
		MultiPrompt []struct{ Prompt string } `json:"multi_prompt"`
		Elements    []struct {
			Pictures []string `json:"element_input_urls"`
		} `json:"element_list"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		t.Fatal(err)
	}
	s := shown{Prompt: p.Prompt}
	for _, shot := range p.MultiPrompt {
		s.Shots = append(s.Shots, shot.Prompt)
	}
	for _, element := range p.Elements {
		s.Pictures = append(s.Pictures, len(element.Pictures))
		for i, link := range element.Pictures {
			if !strings.HasSuffix(link, fmt.Sprintf("/%d.png", i+1)) {
				t.Errorf("picture %d is %s: the earlier ones are to be kept, in their order", i+1, link)
			}
		}
	}
	return s
}

func subjects(items ...string) string { return `"element_list":[` + strings.Join(items, ",") + `]` }

func TestSubjectsByName(t *testing.T) {
	t.Parallel()
	const (
		multi = `"multi_shot":true,"shot_type":"customize","multi_prompt":[{"index":1,"prompt":"@cat sits","duration":2},{"index":2,"prompt":"@dog and @cat run","duration":3}],`
		film  = `,"video_list":[{"video_url":"https://media.example.com/a.mp4"}]`
	)
	say := func(prompt string) string { return `"prompt":` + quoted(prompt, 1) + `,` }
	for name, tt := range map[string]struct {
		model, fields string
		want          shown
	}{
		"one": {
			"alpha-v3", say("@cat sits, @cat sleeps") + subjects(named("cat", 2)),
			shown{"<<<image_1>>> <<<image_2>>> (the cat) sits, <<<image_1>>> <<<image_2>>> sleeps", nil, []int{2}},
		},
		"after a first frame": {
			"alpha-v3", say("@cat sits") + `"image_urls":` + urls(1) + `,` + subjects(named("cat", 3)),
			shown{"<<<image_2>>> <<<image_3>>> <<<image_4>>> (the cat) sits", nil, []int{3}},
		},
		"three of 4 pictures": {
			"alpha-v3", say("@a @b @c") + subjects(named("a", 4), named("b", 4), named("c", 4)),
			shown{"<<<image_1>>> <<<image_2>>> <<<image_3>>> (the a) <<<image_4>>> <<<image_5>>> (the b) <<<image_6>>> <<<image_7>>> (the c)", nil, []int{3, 2, 2}},
		},
		"three, one of few pictures": {
			"alpha-v3", say("@a @b @c") + subjects(named("a", 2), named("b", 4), named("c", 2)),
			shown{"<<<image_1>>> <<<image_2>>> (the a) <<<image_3>>> <<<image_4>>> <<<image_5>>> (the b) <<<image_6>>> <<<image_7>>> (the c)", nil, []int{2, 3, 2}},
		},
		"three beside two frames": {
			"alpha-v3", say("@a @b @c") + `"image_urls":` + urls(2) + `,` + subjects(named("a", 4), named("b", 4), named("c", 4)),
			shown{"<<<image_3>>> <<<image_4>>> (the a) <<<image_5>>> <<<image_6>>> (the b) <<<image_7>>> (the c)", nil, []int{2, 2, 1}},
		},
		"beside one by id": {
			"alpha-v3", say("@b and <<<element_1>>>") + subjects(named("b", 4), `{"element_id":7}`, named("c", 4)),
			shown{"<<<image_4>>> <<<image_5>>> <<<image_6>>> (the c) <<<image_1>>> <<<image_2>>> <<<image_3>>> (the b) and <<<element_1>>>", nil, []int{3, 0, 3}},
		},
		"own images and references": {
			"alpha-video-o1", say("@cat in <<<image_2>>>") + `"image_urls":` + urls(2) + `,` + subjects(named("cat", 2)),
			shown{"<<<image_3>>> <<<image_4>>> (the cat) in <<<image_2>>>", nil, []int{2}},
		},
		"own images without a reference": {
			"alpha-video-o1", say("@cat sits") + `"image_urls":` + urls(1) + `,` + subjects(named("cat", 2)),
			shown{"<<<image_1>>><<<image_2>>> <<<image_3>>> (the cat) sits", nil, []int{2}},
		},
		"a full list": {
			"alpha-video-o1", say("@a, @b <<<image_1>>>") + `"image_urls":` + urls(5) + `,` + subjects(named("a", 4), named("b", 4)),
			shown{"<<<image_6>>> (the a), <<<image_7>>> (the b) <<<image_1>>>", nil, []int{1, 1}},
		},
		"beside a video": {
			"alpha-video-o1", say("@a and @b") + subjects(named("a", 4), named("b", 4)) + film,
			shown{"<<<image_1>>> <<<image_2>>> (the a) and <<<image_3>>> <<<image_4>>> (the b)", nil, []int{2, 2}},
		},
		"beside a video and an image": {
			"alpha-video-o1", say("@a and @b <<<image_1>>>") + `"image_urls":` + urls(1) + `,` + subjects(named("a", 4), `{"element_id":7}`, named("b", 4)) + film,
			shown{"<<<image_2>>> (the a) and <<<image_3>>> (the b) <<<image_1>>>", nil, []int{1, 0, 1}},
		},
		"shots": {
			"alpha-v3", say("@dog runs") + multi + subjects(named("cat", 2), named("dog", 2), named("owl", 2)),
			shown{"<<<image_3>>> <<<image_4>>> runs", []string{
				"<<<image_1>>> <<<image_2>>> (the cat) sits",
				"<<<image_3>>> <<<image_4>>> (the dog) and <<<image_1>>> <<<image_2>>> run",
			}, []int{2, 2, 2}},
		},
		"what to avoid": {
			"alpha-v3", say("a boat ") + `"negative_prompt":" fog, @cat ",` + subjects(named("cat", 2), named("dog", 2)),
			shown{"<<<image_3>>> <<<image_4>>> (the dog) a boat\nAvoid: fog, <<<image_1>>> <<<image_2>>> (the cat)", nil, []int{2, 2}},
		},
		"what to avoid in shots": {
			"alpha-v3", say("a boat") + `"negative_prompt":"fog",` + multi + subjects(named("cat", 2), named("dog", 2)),
			shown{"a boat", []string{
				"<<<image_1>>> <<<image_2>>> (the cat) sits\nAvoid: fog",
				"<<<image_3>>> <<<image_4>>> (the dog) and <<<image_1>>> <<<image_2>>> run\nAvoid: fog",
			}, []int{2, 2}},
		},
		"what to avoid, by id": {
			"alpha-v3", say("a boat") + `"negative_prompt":"fog",` + subjects(`{"element_id":7}`),
			shown{"a boat\nAvoid: fog", nil, []int{0}},
		},
		"a blank to avoid": {
			"alpha-v3", say("a boat") + `"negative_prompt":" ",` + subjects(`{"element_id":7}`),
			shown{"a boat", nil, []int{0}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := model(t, tt.model)
			given := body(t, tt.model, tt.fields)
			sent := parse(t, given)
			r, err := m.Accept(sent)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, shownBy(t, r.Params)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(parse(t, given), sent); diff != "" {
				t.Errorf("the body was changed: %s", diff)
			}
			if strings.Contains(string(r.Params), "negative_prompt") {
				t.Errorf("the vendor has no field negative_prompt here: %s", r.Params)
			}
			plain, err := m.Accept(parse(t, body(t, tt.model, "")))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := billing.Total(r.Charges), billing.Total(plain.Charges); got != want {
				t.Errorf("costs %s, without subjects %s", got, want)
			}
		})
	}
}

// TestMentions holds what counts as a mention of the subjects cat (image 1)
// and others. The descriptions do not fit, so that the texts stay short.
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
				// What reads as a reference is not passed on.
				items = append(items, strings.Replace(named(name, 2), "the ", "<<<image_9>>>", 1))
				pairs = append(pairs, fmt.Sprintf("#%d", i+1), fmt.Sprintf("<<<image_%d>>> <<<image_%d>>>", 2*i+1, 2*i+2))
			}
			params, _, _ := accept(t, "alpha-v3", `"prompt":`+quoted(tt.prompt, 1)+`,`+subjects(items...))
			if want := strings.NewReplacer(pairs...).Replace(tt.want); params["prompt"] != want {
				t.Errorf("%s\nwant %s", params["prompt"], want)
			}
		})
	}
}

// TestRoomForSubjects: what must stand in the text must fit, what is only an
// addition is left out.
func TestRoomForSubjects(t *testing.T) {
	t.Parallel()
	const two = "<<<image_1>>> <<<image_2>>>"
	fill := func(n int, used ...string) string { return strings.Repeat("語", n-len(strings.Join(used, ""))) }
	list := subjects(named("cat", 2))
	inShot := func(text string) string {
		return `"multi_shot":true,"shot_type":"customize","multi_prompt":[{"index":1,"duration":5,"prompt":` + quoted(text, 1) + `}],` + list
	}
	for name, tt := range map[string]struct {
		model, fields string
		param         string // empty: accepted
		want          string // at the start of the text
	}{
		"mention fits":          {"alpha-v3", `"prompt":` + quoted("@cat"+fill(2500, two), 1) + `,` + list, "", two + "語"},
		"mention does not":      {"alpha-v3", `"prompt":` + quoted("@cat"+fill(2501, two), 1) + `,` + list, "prompt", ""},
		"description fits":      {"alpha-v3", `"prompt":` + quoted("@cat"+fill(2500, two, " (the cat)"), 1) + `,` + list, "", two + " (the cat)語"},
		"description does not":  {"alpha-v3", `"prompt":` + quoted("@cat"+fill(2501, two, " (the cat)"), 1) + `,` + list, "", two + "語"},
		"in front, fits":        {"alpha-v3", `"prompt":` + quoted(fill(2500, two, " (the cat) "), 1) + `,` + list, "", two + " (the cat) 語"},
		"in front, bare":        {"alpha-v3", `"prompt":` + quoted(fill(2501, two, " (the cat) "), 1) + `,` + list, "", two + " 語"},
		"in front, no room":     {"alpha-v3", `"prompt":` + quoted(fill(2501, two, " "), 1) + `,` + list, "", "語"},
		"beside an image of o1": {"alpha-video-o1", `"prompt":` + quoted("@cat"+fill(2501, "<<<image_1>>>", two), 1) + `,"image_urls":` + urls(1) + `,` + list, "prompt", ""},
		"in a shot, fits":       {"alpha-v3", inShot("@cat" + fill(512, two)), "", two + "語"},
		"in a shot, does not":   {"alpha-v3", inShot("@cat" + fill(513, two)), "multi_prompt[0].prompt", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := model(t, tt.model).Accept(parse(t, body(t, tt.model, tt.fields)))
			if tt.param != "" {
				if message := refusal(t, err, tt.param); !strings.Contains(message, "the names of element_list") {
					t.Errorf("message %q", message)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := shownBy(t, r.Params)
			if text := strings.Join(append(got.Shots, got.Prompt), ""); !strings.HasPrefix(text, tt.want) {
				t.Errorf("%.60s…, want %s", text, tt.want)
			}
		})
	}
}

// TestMoreSubjectsThanRoom: where no other check bounds them, a picture each
// must fit.
func TestMoreSubjectsThanRoom(t *testing.T) {
	t.Parallel()
	text := strings.Replace(whole, "    size:", "    cast: {type: array, items: {type: object, properties: {a: {type: string}, b: {type: array}}}}\n    size:", 1)
	text = strings.Replace(text, "maxLength: 10}", "maxLength: 99}", 1)
	text = strings.Replace(text, "routes:", "rewrites: [{show_subjects: {list: cast, name: a, description: a, pictures: b, images: cast, word: image, text: prompt, max: 3}}]\nroutes:", 1)
	text = strings.Replace(text, "images: cast", "images: size", 1)
	c, err := catalog.Load(dir(t, map[string]string{"omega.yaml": text}))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := c.Model("omega")
	const cast = `{"a":"x","b":[1,2]},{"a":"y","b":[1,2]},{}`
	if _, err := m.Accept(parse(t, `{"model":"omega","prompt":"@x","cast":[`+cast+`]}`)); err != nil {
		t.Error(err)
	}
	_, err = m.Accept(parse(t, `{"model":"omega","prompt":"@x","cast":[`+cast+`,{}]}`))
	refusal(t, err, "cast")
}
