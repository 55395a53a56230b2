package catalog_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
)

func alphaV3Cases() map[string]fieldCase {
	const multi = `"multi_shot":true,"shot_type":"customize",`
	named := named("cat", 2)
	full := `"prompt":"@cat runs","negative_prompt":"rain","mode":"pro","duration":5,"aspect_ratio":"9:16","image_urls":` + urls(2) +
		`,"watermark":true,"audio":true,` + multi + shots(2, 3) + `,"element_list":[{"element_id":1},` + named + `],"webhook":"https://a.example.com","metadata":{"reference":"r"}`
	common := joined(promptCases(2500), lengthCases("negative_prompt", "at most 2500 characters", 2500),
		listCases("image_urls", ""), elementCases(),
		choiceCases("mode", "4K", "std", "pro", "4k"), integerCases("duration", 3, 15),
		choiceCases("aspect_ratio", "4:3", "16:9", "9:16", "1:1"), switchCases("watermark"), switchCases("audio"))
	return joined(common, map[string]fieldCase{
		"only what is required": {},
		"everything":            {full, "", ""},

		"negative_prompt a number": {`"negative_prompt":1`, "negative_prompt", "string"},

		"mode empty": {`"mode":""`, "", ""},
		"mode null":  {`"mode":null`, "", ""},

		"duration 5.0":      {`"duration":5.0`, "", ""},
		"duration almost 5": {`"duration":5.00000000000000000001`, "duration", "integer"},
		"duration 1e300":    {`"duration":1e300`, "duration", "integer between 3 and 15"},

		"no image":     {`"image_urls":[]`, "", ""},
		"three images": {`"image_urls":` + urls(3), "image_urls", "at most 2 items"},

		"multi_shot a text":           {`"multi_shot":"true"`, "multi_shot", "true or false"},
		"without multi_shot: ignored": {`"shot_type":5,"multi_prompt":"x"`, "", ""},
		"multi_shot false: ignored":   {`"multi_shot":false,"shot_type":"x","multi_prompt":[1]`, "", ""},
		"intelligence: ignored":       {`"multi_shot":true,"shot_type":"intelligence","multi_prompt":7`, "", ""},
		"shot_type missing, shots":    {`"multi_shot":true,` + shots(5), "shot_type", "is required"},
		"shot_type unknown":           {`"multi_shot":true,"shot_type":"auto"`, "shot_type", "customize or intelligence"},
		"multi_prompt missing":        {`"multi_shot":true,"shot_type":"customize"`, "multi_prompt", "is required"},
		"multi_prompt empty":          {multi + `"multi_prompt":[]`, "multi_prompt", "is required"},
		"multi_prompt a text":         {multi + `"multi_prompt":"x"`, "multi_prompt", "array"},
		"one shot":                    {multi + shots(5), "", ""},
		"six shots":                   {multi + `"duration":6,` + shots(1, 1, 1, 1, 1, 1), "", ""},
		"seven shots":                 {multi + `"duration":7,` + shots(1, 1, 1, 1, 1, 1, 1), "multi_prompt", "1 to 6 items"},
		"the sum is too small":        {multi + shots(2, 2), "multi_prompt", "add up to"},
		"the sum is too large":        {multi + shots(3, 3), "multi_prompt", "add up to"},
		"the sum of a given duration": {multi + `"duration":15,` + shots(7, 8), "", ""},
		"a shot of 0":                 {multi + shots(5, 0), "multi_prompt[1].duration", "between 1 and"},
		"a shot above the total":      {multi + shots(6), "multi_prompt[0].duration", "total duration of 5"},
		"a shot of 16":                {multi + `"duration":15,` + shots(16), "multi_prompt[0].duration", "between 1 and 15"},
		"indexes in any order":        {multi + `"multi_prompt":[{"index":2,"prompt":"b","duration":2},{"index":1,"prompt":"a","duration":3}]`, "", ""},
		"an index twice":              {multi + `"multi_prompt":[{"index":1,"prompt":"b","duration":2},{"index":1,"prompt":"a","duration":3}]`, "multi_prompt[1].index", "from 1 to 2"},
		"an index beyond":             {multi + `"multi_prompt":[{"index":1,"prompt":"b","duration":2},{"index":3,"prompt":"a","duration":3}]`, "multi_prompt[1].index", "from 1 to 2"},
		"index 0":                     {multi + `"multi_prompt":[{"index":0,"prompt":"b","duration":5}]`, "multi_prompt[0].index", "integer between 1 and 6"},
		"index 7":                     {multi + `"multi_prompt":[{"index":7,"prompt":"b","duration":5}]`, "multi_prompt[0].index", "integer between 1 and 6"},
		"a shot of 15":                {multi + `"duration":15,` + shots(15), "", ""},
		"shot prompt a number":        {multi + `"multi_prompt":[{"index":1,"prompt":5,"duration":5}]`, "multi_prompt[0].prompt", "string"},
		"shot prompt of blanks":       {multi + `"multi_prompt":[{"index":1,"prompt":" \t","duration":5}]`, "multi_prompt[0].prompt", "is required"},
		"no index":                    {multi + `"multi_prompt":[{"prompt":"b","duration":5}]`, "multi_prompt[0].index", "is required"},
		"index a text":                {multi + `"multi_prompt":[{"index":"1","prompt":"b","duration":5}]`, "multi_prompt[0].index", "JSON number"},
		"shot duration a text":        {multi + `"multi_prompt":[{"index":1,"prompt":"b","duration":"5"}]`, "multi_prompt[0].duration", "JSON number"},
		"shot duration missing":       {multi + `"multi_prompt":[{"index":1,"prompt":"b"}]`, "multi_prompt[0].duration", "is required"},
		"shot prompt of 512":          {multi + `"multi_prompt":[{"index":1,"prompt":` + quoted("語", 512) + `,"duration":5}]`, "", ""},
		"shot prompt of 513":          {multi + `"multi_prompt":[{"index":1,"prompt":` + quoted("語", 513) + `,"duration":5}]`, "multi_prompt[0].prompt", "512"},
		"shot prompt missing":         {multi + `"multi_prompt":[{"index":1,"duration":5}]`, "multi_prompt[0].prompt", "is required"},
		"shot is no object":           {multi + `"multi_prompt":["b"]`, "multi_prompt[0]", "object"},
		"unknown field of a shot":     {multi + `"multi_prompt":[{"index":1,"prompt":"b","duration":5,"camera":[1]}]`, "", ""},

		// What a vendor cannot do is for its adapter to say.
		"a named element in 4k": {`"mode":"4k","image_urls":` + urls(1) + `,"element_list":[` + named + `]`, "", ""},

		"unknown fields":      {`"cfg_scale":"x","n":[[]],"seed":1e300`, "", ""},
		"first in order wins": {`"watermark":1,"duration":2,"mode":"x"`, "mode", ""},
		"missing has a place": {`"duration":2,"prompt":null`, "prompt", "is required"},
	})
}

func alphaVideoO1Cases() map[string]fieldCase {
	const video = `"video_list":[{"video_url":"https://media.example.com/a.mp4"}]`
	full := `"prompt":"<<<image_2>>> and @cat","mode":"pro","duration":10,"aspect_ratio":"1:1","image_urls":` + urls(2) +
		`,"video_list":[{"video_url":"https://a.example.com/1","refer_type":"feature","keep_original_sound":"no"}],"element_list":[{"element_id":1},` + named("cat", 2) + `],"watermark":true`
	aVideo := func(value string) string { return `"video_list":[{"video_url":` + value + `}]` }
	common := joined(promptCases(2500), listCases("image_urls", ""), elementCases(),
		mediaCases("video_list[0].video_url", aVideo), choiceCases("mode", "4k", "std", "pro"),
		choiceCases("aspect_ratio", "3:4", "16:9", "9:16", "1:1"), switchCases("watermark"))
	return joined(common, map[string]fieldCase{
		"only what is required": {},
		"everything":            {full, "", ""},

		"reference 1 of 1":    {`"prompt":"<<<image_1>>>","image_urls":` + urls(1), "", ""},
		"reference 7 of 7":    {`"prompt":"<<<image_7>>>","image_urls":` + urls(7), "", ""},
		"reference 2 of 1":    {`"prompt":"<<<image_1>>> <<<image_2>>>","image_urls":` + urls(1), "prompt", "from 1 to 1"},
		"reference 0":         {`"prompt":"<<<image_0>>>","image_urls":` + urls(1), "prompt", "from 1 to 1"},
		"reference 01":        {`"prompt":"<<<image_01>>>","image_urls":` + urls(1), "prompt", "from 1 to 1"},
		"reference without":   {`"prompt":"<<<image_1>>>"`, "prompt", "image_urls is empty"},
		"a huge reference":    {`"prompt":"<<<image_99999999999999999999>>>","image_urls":` + urls(1), "prompt", "from 1 to 1"},
		"no reference at all": {`"prompt":"<<<image_x>>> <<image_5>> <<<element_9>>>","image_urls":` + urls(1), "", ""},

		"duration 5":      {`"duration":5`, "", ""},
		"duration 10":     {`"duration":10`, "", ""},
		"duration 4":      {`"duration":4`, "duration", "5 or 10"},
		"duration 6":      {`"duration":6`, "duration", "5 or 10"},
		"duration a text": {`"duration":"10"`, "duration", "JSON number, not as a string"},

		"seven images":                  {`"image_urls":` + urls(7), "", ""},
		"eight images":                  {`"image_urls":` + urls(8), "image_urls", "at most 7 items"},
		"4 images, 3 elements":          {`"image_urls":` + urls(4) + `,"element_list":` + elements(3), "", ""},
		"5 images, 3 elements":          {`"image_urls":` + urls(5) + `,"element_list":` + elements(3), "element_list", "at most 7 items together"},
		"4 images, a video":             {`"image_urls":` + urls(4) + `,` + video, "", ""},
		"5 images, a video":             {`"image_urls":` + urls(5) + `,` + video, "image_urls", "at most 4 items together"},
		"2 images, 2 elements, a video": {`"image_urls":` + urls(2) + `,"element_list":` + elements(2) + `,` + video, "", ""},
		"2 images, 3 elements, a video": {`"image_urls":` + urls(2) + `,"element_list":` + elements(3) + `,` + video, "element_list", "at most 4 items together"},
		"5 images, an empty video list": {`"video_list":[],"image_urls":` + urls(5), "", ""},
		"4 images, 3 named":             {`"image_urls":` + urls(4) + `,"element_list":[` + named("a", 4) + `,` + named("b", 4) + `,` + named("c", 4) + `]`, "", ""},
		"5 images, 3 named":             {`"image_urls":` + urls(5) + `,"element_list":[` + named("a", 2) + `,` + named("b", 2) + `,` + named("c", 2) + `]`, "element_list", "at most 7 items together"},
		"3 images, 2 named, a video":    {`"image_urls":` + urls(3) + `,"element_list":[` + named("a", 2) + `,` + named("b", 2) + `],` + video, "element_list", "at most 4 items together"},
		"a picture's reference":         {`"prompt":"<<<image_1>>>","element_list":[` + named("a", 2) + `]`, "prompt", "image_urls is empty"},

		"two videos":              {`"video_list":[{"video_url":"https://a.example.com/1"},{"video_url":"https://a.example.com/2"}]`, "video_list", "at most 1 item"},
		"a video as a text":       {`"video_list":["https://a.example.com/1"]`, "video_list[0]", "object"},
		"video_list a text":       {`"video_list":"https://a.example.com/1"`, "video_list", "array"},
		"a video without URL":     {`"video_list":[{}]`, "video_list[0].video_url", "is required"},
		"refer_type base":         {`"video_list":[{"video_url":"https://a.example.com/1","refer_type":"base"}]`, "", ""},
		"refer_type other":        {`"video_list":[{"video_url":"https://a.example.com/1","refer_type":"style"}]`, "video_list[0].refer_type", "base or feature"},
		"keep_original_sound yes": {`"video_list":[{"video_url":"https://a.example.com/1","keep_original_sound":"yes"}]`, "", ""},
		"keep_original_sound on":  {`"video_list":[{"video_url":"https://a.example.com/1","keep_original_sound":"on"}]`, "video_list[0].keep_original_sound", "yes or no"},
	})
}

func thetaCases() map[string]fieldCase {
	common := joined(promptCases(800), choiceCases("size", "21:9", "1:1", "4:3", "3:4", "16:9", "9:16", "3:2", "2:3"),
		choiceCases("resolution", "4K", "1K", "2K"), switchCases("prompt_extend"))
	return joined(common, map[string]fieldCase{
		"only what is required": {},
		"everything":            {`"prompt":"a","size":"2:3","resolution":"2K","prompt_extend":true`, "", ""},
		"size of pixels":        {`"size":"1024x1024"`, "size", "1:1"},
		"n 1":                   {`"n":1`, "n", "not supported"},
		"n null":                {`"n":null`, "", ""},
	})
}

// TestEmptyTexts checks that an empty optional text counts as absent, in every field and at every
// depth, unless the schema has a minimum length. Others may be refused as missing.
func TestEmptyTexts(t *testing.T) {
	t.Parallel()
	for _, o := range operations(t) {
		fields := o.Texts()
		if o.Model.Type != mediagate.TypeSpeech && (!slices.Contains(fields, "webhook") || !slices.Contains(fields, "metadata.reference")) {
			t.Errorf("%s: the texts are %v", o.key, fields)
		}
		for _, field := range fields {
			outer, inner, nested := strings.Cut(field, ".")
			empty := `"` + outer + `":""`
			if nested {
				empty = `"` + outer + `":{"` + inner + `":""}`
			}
			if _, given := parse(t, body(t, o.key, ""))[outer]; given {
				continue
			}
			want, err := o.Accept(parse(t, body(t, o.key, "")))
			got, refused := o.Accept(parse(t, body(t, o.key, empty)))
			if err != nil || refused != nil || !reflect.DeepEqual(want, got) {
				t.Errorf("%s: %s: %v, %v: %s, want %s", o.key, empty, err, refused, got.Params, want.Params)
			}
		}
	}
	const video = `"video_list":[{"video_url":"https://media.example.com/a.mp4"`
	want, err := operation(t, "alpha-video-o1").Accept(parse(t, body(t, "alpha-video-o1", video+`}]`)))
	got, refused := operation(t, "alpha-video-o1").Accept(parse(t, body(t, "alpha-video-o1", video+`,"refer_type":"","keep_original_sound":""}]`)))
	if err != nil || refused != nil || !reflect.DeepEqual(want, got) {
		t.Errorf("in a list: %v, %v: %s, want %s", err, refused, got.Params, want.Params)
	}
}
