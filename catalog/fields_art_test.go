package catalog_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// artPath is where pictures are asked for; below it is what works on them.
const artPath = "/v1/artgen/generations"

// artKey is the key of the operation at the path's end.
func artKey(end string) string { return "art " + artPath + end }

// artActions are the ends of the paths that work on an earlier picture.
var artActions = []string{"/upscale", "/variation", "/high-variation", "/low-variation", "/inpaint", "/reroll", "/pan", "/zoom"}

// artNeeded are the fields without which these take no request.
func artNeeded() map[string]map[string]string {
	all := map[string]map[string]string{
		artKey(""):          {"prompt": `"a boat"`},
		artKey("/imagine"):  {"prompt": `"a boat"`},
		artKey("/describe"): {"image_urls": `["https://media.example.com/0.png"]`},
		artKey("/blend"):    {"image_urls": `["https://media.example.com/0.png","https://media.example.com/1.png"]`},
		artKey("/modal"):    {"task_id": `"task_1"`},
	}
	for _, end := range artActions {
		all[artKey(end)] = map[string]string{"task_id": `"task_1"`}
	}
	all[artKey("/upscale")]["index"], all[artKey("/variation")]["index"] = "1", "1"
	all[artKey("/pan")]["direction"], all[artKey("/zoom")]["zoom_ratio"] = `"left"`, "2"
	return all
}

func addArt(suite map[string]map[string]fieldCase) {
	suite[artKey("")], suite[artKey("/imagine")] = imagineCases(), imagineCases()
	for _, end := range artActions {
		suite[artKey(end)] = actionCases(end)
	}
	suite[artKey("/describe")] = joined(speedCases(), imageCases(1, 1), map[string]fieldCase{
		"everything": {`"image_urls":["https://a.example.com/1"],"speed":"fast"`, "", ""},
	})
	dimensions := choiceCases("dimensions", "square", "PORTRAIT", "SQUARE", "LANDSCAPE")
	suite[artKey("/blend")] = joined(speedCases(), imageCases(2, 4), dimensions, map[string]fieldCase{
		"everything": {`"image_urls":` + urls(2) + `,"dimensions":"PORTRAIT","speed":"fast"`, "", ""},
	})
	suite[artKey("/modal")] = joined(speedCases(), parentCases(), plainCases("prompt"), mediaCases("mask_url", func(v string) string { return `"mask_url":` + v }), map[string]fieldCase{
		"everything":      {`"task_id":"t","prompt":"a","mask_url":"https://a.example.com/1","speed":"relax"`, "", ""},
		"prompt empty":    {`"prompt":""`, "", ""},
		"prompt a number": {`"prompt":1`, "prompt", "string"},
		"prompt of 6000":  {`"prompt":` + quoted("語", 6000), "", ""},
		"prompt of 6001":  {`"prompt":` + quoted("語", 6001), "prompt", "at most 6000 characters"},
	})
}

// plainCases are of a text that the vendor must read as words alone, and whose
// addresses are fetched.
func plainCases(field string) map[string]fieldCase {
	cases := map[string]fieldCase{}
	for _, text := range []string{
		"a well-known boat, 2-3 oars", "a boat - at sea", "a boat -- at sea", "a boat — at sea", "- a boat\n- a lake", "a boat -", "a–b", "1990–2000",
		"a \u00a0boat", "\u3000a boat", "a boat\r\n- a lake", "hot:: dog", "a [boat] (red)", "https://example.com/boat.png a boat", "a boat, http://example.com:8080/b.png?x=1,",
		"(see https://example.com/b.png)", "a boat: https://例え.jp/船.png", "https://8.8.8.8/船.png", "https://2例え.jp/船.png", "http: // no address",
	} {
		cases[field+" "+strconv.Quote(text)] = fieldCase{fmt.Sprintf("%q:%s", field, jsonText(text)), "", ""}
	}
	for text, rule := range map[string]string{
		"a boat --fast":                  "-- or an em dash",
		"a boat --re--fastpeat 4":        "-- or an em dash",
		"a boat\n--repeat 4":             "-- or an em dash",
		"--ar 3:2":                       "-- or an em dash",
		"a boat --quality 4":             "-- or an em dash",
		"a boat --2":                     "-- or an em dash",
		"a boat —repeat 4":               "-- or an em dash",
		"a boat —-repeat 4":              "-- or an em dash",
		"a boat ---repeat 4":             "-- or an em dash",
		"a well--known boat":             "-- or an em dash",
		"a boat --повтор":                "-- or an em dash",
		"a boat -\u200b-repeat 4":        "-- or an em dash",
		"a boat --\u200brepeat 4":        "-- or an em dash",
		"a boat -\ufe0f-repeat 4":        "-- or an em dash",
		"a boat --\ufe0frepeat 4":        "-- or an em dash",
		"a boat -\u034f-\u180brepeat":    "-- or an em dash",
		"a boat -\x01-\x7frepeat 4":      "-- or an em dash",
		"a boat —\u0301repeat 4":         "-- or an em dash",
		"a boat -\u3164-repeat 4":        "-- or an em dash",
		"a boat \u2060\u00a0\ufe0f-red":  "other than space and newline before a dash",
		"a {red, blue} boat":             "curly brace",
		"a boat }":                       "curly brace",
		"a boat\u00a0--repeat 4":         "-- or an em dash",
		"a boat\u00a0- red":              "other than space and newline before a dash",
		"a boat\u3000-red":               "other than space and newline before a dash",
		"a boat\t-red":                   "other than space and newline before a dash",
		"a boat\u2028—":                  "other than space and newline before a dash",
		"a boat\u0085-":                  "other than space and newline before a dash",
		"http://127.0.0.1/a.png":         "not public",
		"a boat,HTTP://10.0.0.1/a":       "not public",
		"(http://[::1]/a.png)":           "not public",
		"http://10.0.0.1船.example.com/a": "not public",
		"a http://10.0.0.1、a lake":       "not public",
		"file:///etc/passwd a boat":      "http or https",
		"a boat ftp://example.com/a":     "http or https",
		"https://example.com/?u=http://169.254.169.254/latest": "not public",
	} {
		cases[field+" "+strconv.Quote(text)] = fieldCase{fmt.Sprintf("%q:%s", field, jsonText(text)), field, rule}
	}
	return cases
}

func jsonText(text string) string {
	b, _ := json.Marshal(text) // which cannot fail for a text
	return string(b)
}

func speedCases() map[string]fieldCase {
	return choiceCases("speed", "slow", "relax", "fast", "turbo")
}

func parentCases() map[string]fieldCase {
	return map[string]fieldCase{
		"task_id null":     {`"task_id":null`, "task_id", "is required"},
		"task_id empty":    {`"task_id":""`, "task_id", ""},
		"task_id blank":    {`"task_id":" "`, "task_id", ""},
		"task_id a number": {`"task_id":1`, "task_id", "string"},
		"task_id of 64":    {`"task_id":` + quoted("t", 64), "", ""},
		"task_id of 65":    {`"task_id":` + quoted("t", 65), "task_id", "64"},
	}
}

// imageCases are of a required list of least to most images.
func imageCases(least, most int) map[string]fieldCase {
	cases := mediaCases("image_urls[0]", func(v string) string {
		return `"image_urls":[` + v + strings.Repeat(`,"https://a.example.com/0"`, least-1) + `]`
	})
	maps.Copy(cases, map[string]fieldCase{
		"image_urls a text": {`"image_urls":"https://a.example.com/1"`, "image_urls", "array"},
		"no image":          {`"image_urls":[]`, "image_urls", "is required"},
		"most images":       {`"image_urls":` + urls(most), "", ""},
		"an image too many": {`"image_urls":` + urls(most+1), "image_urls", ""},
	})
	if least > 1 {
		cases["an image too few"] = fieldCase{`"image_urls":` + urls(least-1), "image_urls", ""}
	}
	return cases
}

func imagineCases() map[string]fieldCase {
	common := joined(promptCases(6000), plainCases("prompt"), plainCases("negative_prompt"), speedCases(),
		integerCases("stylize", 0, 1000), integerCases("chaos", 0, 100), integerCases("weird", 0, 3000),
		integerCases("seed", 0, 4294967295),
		choiceCases("version", "5", "5.2", "6", "6.1", "7", "niji 6"),
		mediaCases("image_urls[0]", func(v string) string { return `"image_urls":[` + v + `]` }))
	return joined(common, map[string]fieldCase{
		"only what is required": {},
		"a long URL in prompt":  {`"prompt":"https://example.com/` + strings.Repeat("a", 2048) + ` boat"`, "prompt", "2048"},
		"everything":            {`"prompt":"a","negative_prompt":"b","image_urls":` + urls(5) + `,"speed":"turbo","size":"16:9","version":"niji 6","seed":7,"stylize":1,"chaos":1,"weird":1,"tile":true`, "", ""},
		"six images":            {`"image_urls":` + urls(6), "image_urls", "at most 5 items"},
		"no image":              {`"image_urls":[]`, "", ""},
		"image_urls a text":     {`"image_urls":"https://a.example.com/1"`, "image_urls", "array"},
		"negative of 2000":      {`"negative_prompt":` + quoted("語", 2000), "", ""},
		"negative of 2001":      {`"negative_prompt":` + quoted("語", 2001), "negative_prompt", "at most 2000"},
		"negative a number":     {`"negative_prompt":1`, "negative_prompt", "string"},
		"size 1:1":              {`"size":"1:1"`, "", ""},
		"size 99:10":            {`"size":"99:10"`, "", ""},
		"size 100:1":            {`"size":"100:1"`, "size", "must be W:H"},
		"size 0:1":              {`"size":"0:1"`, "size", "must be W:H"},
		"size of pixels":        {`"size":"1024x1024"`, "size", "must be W:H"},
		"size a number":         {`"size":1`, "size", ""},
		"tile a text":           {`"tile":"true"`, "tile", "true or false"},
	})
}

// actionCases are of what presses a button of an earlier task.
func actionCases(end string) map[string]fieldCase {
	cases := joined(speedCases(), parentCases(), map[string]fieldCase{
		"custom_id empty":    {`"custom_id":""`, "", ""},
		"custom_id blank":    {`"custom_id":" "`, "custom_id", ""},
		"custom_id a number": {`"custom_id":1`, "custom_id", "string"},
		"custom_id of 512":   {`"custom_id":` + quoted("c", 512), "", ""},
		"custom_id of 513":   {`"custom_id":` + quoted("c", 513), "custom_id", "512"},
	})
	field, given := "", ""
	switch end {
	case "/upscale", "/variation", "/high-variation", "/low-variation", "/inpaint":
		field, given = "index", "2"
		maps.Copy(cases, integerCases("index", 1, 4))
	case "/pan":
		field, given = "direction", `"up"`
		maps.Copy(cases, choiceCases("direction", "north", "left", "right", "up", "down"))
	case "/zoom":
		field, given = "zoom_ratio", "1.5"
		maps.Copy(cases, map[string]fieldCase{
			"by 1.5": {`"zoom_ratio":1.5`, "", ""}, "by 2": {`"zoom_ratio":2`, "", ""}, "by 2.0": {`"zoom_ratio":2.0`, "", ""},
			"by 3": {`"zoom_ratio":3`, "zoom_ratio", "1.5 or 2"}, "by a text": {`"zoom_ratio":"2"`, "zoom_ratio", "JSON number"},
		})
	}
	if end == "/upscale" || end == "/variation" || end == "/pan" || end == "/zoom" { // where it is one of two that are needed
		cases["custom_id blank"] = fieldCase{`"custom_id":" "`, "", ""}
	}
	everything := `"task_id":"t","custom_id":"c","speed":"turbo"`
	if field != "" {
		everything += `,"` + field + `":` + given
		needs := field != "index" || end == "/upscale" || end == "/variation"
		without := fieldCase{`"` + field + `":null`, "", ""}
		if needs {
			without.param, without.rule = field, "is required"
		}
		cases["without "+field] = without
		cases["a button in place of "+field] = fieldCase{`"` + field + `":null,"custom_id":"c"`, "", ""}
	}
	cases["everything"] = fieldCase{everything, "", ""}
	return cases
}
