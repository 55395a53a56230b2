package catalog_test

import (
	"fmt"
	"strings"
)

// said is a message of a user, with this content.
func said(content string) string { return `{"role":"user","content":` + content + `}` }

func gamma26Cases() map[string]fieldCase {
	const (
		none    = `"prompt":null`
		missing = "is required, or one of messages, image_urls, image_with_roles and video_urls"
		image   = `{"type":"image_url","image_url":"https://a.example.com/1"}`
		video   = `{"type":"video_url","video_url":{"url":"https://a.example.com/1"}}`
	)
	parts := func(list ...string) string { return said("[" + strings.Join(list, ",") + "]") }
	messages := func(list ...string) string { return none + `,"messages":[` + strings.Join(list, ",") + `]` }
	many := func(part string, n int) []string {
		list := make([]string, n)
		for i := range list {
			list[i] = part
		}
		return list
	}
	role := func(fields string) string { return none + `,"image_with_roles":[{` + fields + `}]` }
	const made = `"duration":15,"resolution":"1080P","aspect_ratio":"3:4","negative_prompt":"rain","audio":true,"prompt_extend":false,"watermark":true,"seed":1`
	part := func(kind string) func(string) string {
		return func(value string) string {
			return messages(parts(`{"type":"` + kind + `","` + kind + `":` + value + `}`))
		}
	}
	url := func(value string) string { return role(`"role":"reference","url":` + value) }
	// The vendor's bounds of the prompt are its adapter's.
	common := joined(promptCases(0), listCases("image_urls", ""), listCases("video_urls", ""),
		mediaCases("image_with_roles[0].url", url), mediaCases("messages[0].content[0].image_url", part("image_url")),
		mediaCases("messages[0].content[0].video_url", part("video_url")),
		choiceCases("aspect_ratio", "21:9", "16:9", "9:16", "1:1", "4:3", "3:4"),
		choiceCases("resolution", "720p", "720P", "1080P"), switchCases("audio"), switchCases("prompt_extend"),
		switchCases("watermark"), integerCases("seed", 0, 2147483647))
	return joined(common, map[string]fieldCase{
		"everything":             {`"prompt":"a",` + messages(said(`"b"`))[len(none)+1:] + `,"image_urls":` + urls(2) + `,"image_with_roles":[{"url":"https://a.example.com/1","role":"reference"}],"video_urls":` + urls(3) + `,` + made, "", ""},
		"nothing":                {none, "prompt", missing},
		"an empty list":          {none + `,"messages":[],"image_urls":[],"video_urls":[]`, "prompt", missing},
		"a prompt of blanks too": {`"prompt":" ","video_urls":` + urls(1), "", ""},
		"an empty prompt too":    {`"prompt":"","image_urls":` + urls(1), "prompt", "at least 1 character"},
		"beside a message":       {`"prompt":"",` + messages(said(`"b"`))[len(none)+1:], "prompt", "at least 1 character"},

		"a message of null":       {messages(said(`null`)), "messages[0].content", "must be a text that is not blank, or a list of parts"},
		"a message of no parts":   {messages(said(`[]`)), "messages[0].content", "1 to 20 items"},
		"20 parts":                {messages(parts(many(`{"type":"text","text":"a"}`, 20)...)), "", ""},
		"21 parts":                {messages(parts(many(`{"type":"text","text":"a"}`, 21)...)), "messages[0].content", "1 to 20 items"},
		"100 messages":            {messages(many(said(`"a"`), 100)...), "", ""},
		"101 messages":            {messages(many(said(`"a"`), 101)...), "messages", "at most 100 items"},
		"no content":              {messages(`{"role":"user"}`), "messages[0].content", "is required"},
		"no role":                 {messages(`{"content":"a"}`), "messages[0].role", "is required"},
		"system":                  {messages(`{"role":"system","content":"a"}`), "", ""},
		"assistant":               {messages(`{"role":"assistant","content":"a"}`), "", ""},
		"another role":            {messages(`{"role":"tool","content":"a"}`), "messages[0].role", "system, user or assistant"},
		"messages a blank text":   {`"messages":""`, "messages", "array"}, // beside a prompt, which alone would do
		"images a blank text":     {`"image_urls":""`, "image_urls", "array"},
		"roles a blank text":      {`"image_with_roles":" "`, "image_with_roles", "array"},
		"videos a blank text":     {`"video_urls":"\u3000"`, "video_urls", "array"},
		"a message a text":        {none + `,"messages":["x"]`, "messages[0]", "object"},
		"the second is wrong":     {messages(said(`"a"`), said(`1`)), "messages[1].content", ""},
		"a part a text":           {messages(parts(`"x"`)), "messages[0].content[0]", "object"},
		"a part of no type":       {messages(parts(`{"text":"a"}`)), "messages[0].content[0].type", "is required"},
		"a part of another type":  {messages(parts(`{"type":"input_audio"}`)), "messages[0].content[0].type", "text, image_url or video_url"},
		"a text part of none":     {messages(parts(`{"type":"text"}`)), "messages[0].content[0].text", "is required"},
		"a text part, a number":   {messages(parts(`{"type":"text","text":1}`)), "messages[0].content[0].text", "string"},
		"an image part of data":   {messages(parts(`{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}`)), "messages[0].content[0].image_url.url", ""},
		"blank beside a prompt":   {`"messages":[` + said(`" "`) + `]`, "messages[0].content", "is required"},
		"a blank part beside one": {`"messages":[` + parts(`{"type":"text","text":" "}`) + `]`, "messages[0].content[0].text", "is required"},
		"a message of one":        {`"messages":[` + said(`"a"`) + `,` + parts(`{"type":"text","text":"a"}`) + `]`, "", ""},
		"a role as a text":        {`"image_with_roles":["https://a.example.com/1"]`, "image_with_roles[0]", "object"},
		"a video part of none":    {messages(parts(`{"type":"video_url","video_url":{}}`)), "messages[0].content[0].video_url.url", "is required"},
		"an image part, private":  {messages(parts(`{"type":"image_url","image_url":"http://10.0.0.1/a"}`)), "messages[0].content[0].image_url", "is refused"},
		"5 image parts":           {messages(parts(many(image, 5)...)), "", ""},
		"6 image parts":           {messages(parts(many(image, 5)...), parts(image)), "messages", "messages and image_urls may hold at most 5 items together"},
		"3 video parts":           {messages(parts(many(video, 3)...)), "", ""},
		"4 video parts":           {messages(parts(many(video, 4)...)), "messages", "messages and video_urls may hold at most 3 items together"},
		"2 images and 3 parts":    {messages(parts(many(image, 3)...)) + `,"image_urls":` + urls(2), "", ""},
		"3 images and 3 parts":    {messages(parts(many(image, 3)...)) + `,"image_urls":` + urls(3), "messages", "at most 5 items together"},

		"5 images":          {none + `,"image_urls":` + urls(5), "", ""},
		"6 images":          {none + `,"image_urls":` + urls(6), "image_urls", "at most 5 items"},
		"4 videos":          {none + `,"video_urls":` + urls(4), "video_urls", "at most 3 items"},
		"a first frame":     {role(`"url":"https://a.example.com/1","role":"first_frame"`), "", ""},
		"a last frame":      {role(`"url":"https://a.example.com/1","role":"last_frame"`), "", ""}, // what goes together is the vendor's
		"a role of none":    {role(`"url":"https://a.example.com/1"`), "image_with_roles[0].role", "is required"},
		"a role that is no": {role(`"url":"https://a.example.com/1","role":"middle"`), "image_with_roles[0].role", "first_frame, last_frame or reference"},
		"7 roles":           {none + `,"image_with_roles":[` + strings.Join(many(`{"url":"https://a.example.com/1","role":"reference"}`, 7), ",") + `]`, "", ""},
		"8 roles":           {none + `,"image_with_roles":[` + strings.Join(many(`{"url":"https://a.example.com/1","role":"reference"}`, 8), ",") + `]`, "image_with_roles", "at most 7 items"},

		"duration 0":            {`"duration":0`, "duration", "integer of at least 1"},
		"duration 1":            {`"duration":1`, "duration", "duration must be an integer between 2 and 15"},
		"duration 2":            {`"duration":2`, "", ""},
		"duration 15":           {`"duration":15`, "", ""},
		"duration 16":           {`"duration":16`, "duration", "duration must be an integer between 2 and 15"},
		"duration 1e18":         {`"duration":1e18`, "duration", "between 2 and 15"},
		"duration 1e300":        {`"duration":1e300`, "duration", "between 2 and 15"},
		"duration a text":       {`"duration":"5"`, "duration", "JSON number, not as a string"},
		"aspect_ratio a number": {`"aspect_ratio":1`, "aspect_ratio", "string"},
		"resolution 720":        {`"resolution":720`, "resolution", "string"},
		"negative a number":     {`"negative_prompt":1`, "negative_prompt", "string"},
	})
}

func gamma27Cases() map[string]fieldCase {
	source := func(value string) string { return `"video_urls":[` + value + `]` }
	full := `"prompt":"a","negative_prompt":"b","video_urls":` + urls(1) + `,"image_urls":` + urls(4) +
		`,"resolution":"720P","duration":10,"size":"3:4","prompt_extend":false,"watermark":true,"seed":7,"metadata":{"audio_setting":"origin"}`
	common := joined(lengthCases("prompt", "at most 5000 characters", 5000),
		lengthCases("negative_prompt", "at most 500 characters", 500),
		mediaCases("video_urls[0]", source), listCases("image_urls", ""),
		choiceCases("size", "21:9", "16:9", "9:16", "1:1", "4:3", "3:4"), choiceCases("resolution", "1080p", "720P", "1080P"),
		switchCases("prompt_extend"), switchCases("watermark"), integerCases("seed", 0, 2147483647))
	cases := joined(common, map[string]fieldCase{
		"everything":               {full, "", ""},
		"video_urls a text":        {`"video_urls":"https://a.example.com/1"`, "video_urls", "array"},
		"only what is required":    {},
		"prompt null":              {`"prompt":null`, "", ""},
		"prompt empty":             {`"prompt":""`, "", ""},
		"prompt a number":          {`"prompt":5`, "prompt", "string"},
		"no video in it":           {`"video_urls":[]`, "video_urls", "is required"},
		"a second video":           {`"video_urls":["https://a.example.com/1","http://169.254.169.254/a"]`, "", ""},
		"5 images":                 {`"image_urls":` + urls(5), "image_urls", "at most 4 items"},
		"no image":                 {`"image_urls":[]`, "", ""},
		"duration 0":               {`"duration":0`, "", ""},
		"duration 1":               {`"duration":1`, "duration", "must be 0 or an integer between 2 and 10"},
		"duration 2":               {`"duration":2`, "", ""},
		"duration 10":              {`"duration":10`, "", ""},
		"duration 11":              {`"duration":11`, "duration", "must be 0 or an integer between 2 and 10"},
		"negative_prompt a number": {`"negative_prompt":1`, "negative_prompt", "string"},
		"duration a text":          {`"duration":"2"`, "duration", "must be 0 or an integer between 2 and 10, sent as a JSON number, not as a string"},
		"audio_setting auto":       {`"metadata":{"audio_setting":"auto"}`, "", ""},
		"audio_setting Auto":       {`"metadata":{"audio_setting":"Auto"}`, "metadata.audio_setting", "metadata.audio_setting must be auto or origin"},
		"audio_setting null":       {`"metadata":{"audio_setting":null}`, "metadata.audio_setting", "auto or origin"},
		"other metadata":           {`"metadata":{"mine":{"x":[1]},"reference":"r"}`, "", ""},
	})
	for n := 3; n < 10; n++ {
		cases[fmt.Sprint("duration ", n)] = fieldCase{fields: fmt.Sprintf(`"duration":%d`, n)}
	}
	return cases
}
