package catalog_test

import "maps"

// The keys of the operations on songs.
const (
	songs         = "music-a /v1/music/generations"
	remasters     = "music-a /v1/music/generations/remaster"
	stemsAll      = "music-a /v1/music/generations/stemsAll"
	voices        = "music-a /v1/music/generations/createVoice"
	replacements  = "music-a /v1/music/generations/replaceMusic"
	samples       = "music-a /v1/music/generations/sample"
	flowSongs     = "music-b /v1/music/generations"
	flowStems     = "music-b /v1/music/generations/stemsMusicB"
	flowReplacing = "music-b /v1/music/generations/replaceMusicB"
)

// sourceCases are for a field that must name what an operation works on.
func sourceCases(field string) map[string]fieldCase {
	cases := map[string]fieldCase{
		"only what is required": {},
		field + " of one":       {`"` + field + `":"c"`, "", ""},
		field + " null":         {`"` + field + `":null`, field, "is required"},
		field + " empty":        {`"` + field + `":""`, field, "is required"},
		field + " of blanks":    {`"` + field + `":" \u3000"`, field, "is required"},
		field + " of tabs":      {`"` + field + `":" \t"`, field, "is required"},
		field + " a number":     {`"` + field + `":1`, field, "string"},
	}
	if field == "task_id" {
		maps.Copy(cases, integerCases("audio_index", 1, 100))
		cases["everything"] = fieldCase{`"task_id":"t","audio_index":2`, "", ""}
	} else {
		cases["everything"] = fieldCase{`"clip_id":"c"`, "", ""}
	}
	return cases
}

func versionCases() map[string]fieldCase {
	return choiceCases("version", "v3", "v4", "v4.5", "v4.5+", "v5", "v5.5")
}

// sectionCases are for the times of a part of a song.
func sectionCases(required bool) map[string]fieldCase {
	cases := map[string]fieldCase{
		"start_s 0":         {`"start_s":0,"end_s":0.5`, "", ""},
		"start_s negative":  {`"start_s":-0.001,"end_s":0.5`, "start_s", "at least 0"},
		"start_s a text":    {`"start_s":"1"`, "start_s", "JSON number, not as a string"},
		"end_s negative":    {`"start_s":0,"end_s":-1`, "end_s", "at least 0"},
		"end_s a text":      {`"start_s":0,"end_s":"NaN"`, "end_s", "JSON number, not as a string"},
		"end_s as start_s":  {`"start_s":2.5,"end_s":2.5`, "end_s", "end_s must be greater than start_s"},
		"end_s before":      {`"start_s":2.5,"end_s":2.4`, "end_s", "end_s must be greater than start_s"},
		"end_s just behind": {`"start_s":2.5,"end_s":2.51`, "", ""},
		"end_s 0":           {`"start_s":0,"end_s":0`, "end_s", "end_s must be greater than start_s"},
	}
	if required {
		cases["start_s null"] = fieldCase{`"start_s":null`, "start_s", "start_s is required"}
		cases["end_s null"] = fieldCase{`"end_s":null`, "end_s", "end_s is required"}
		return cases
	}
	cases["start_s null"] = fieldCase{`"start_s":null,"end_s":1`, "", ""}
	cases["end_s null"] = fieldCase{`"start_s":1,"end_s":null`, "", ""}
	cases["end_s 0 alone"] = fieldCase{`"end_s":0`, "end_s", "end_s must be greater than start_s"}
	return cases
}

// textCases are for optional texts.
func textCases(with string, fields ...string) map[string]fieldCase {
	cases := map[string]fieldCase{}
	for _, field := range fields {
		cases[field] = fieldCase{with + `"` + field + `":"x"`, "", ""}
		cases[field+" empty"] = fieldCase{with + `"` + field + `":""`, "", ""}
		cases[field+" a number"] = fieldCase{with + `"` + field + `":1`, field, "string"}
	}
	return cases
}

// songCases are for all that makes a song of music-a, whatever it begins with.
func songCases(more map[string]fieldCase) map[string]fieldCase {
	const style = `"prompt":"a","title":"b","tags":"c","negative_tags":"d","style_weight":0.5,"weirdness_constraint":0.5,"audio_weight":0.5`
	genders := choiceCases("vocal_gender", "x", "m", "f")
	cases := joined(more, versionCases(), textCases(`"custom":true,`, "negative_tags"), genders, map[string]fieldCase{
		"only what is required":        {},
		"everything custom":            {`"custom":true,"instrumental":true,"auto_lyrics":true,"vocal_gender":"m","version":"v5",` + style, "", ""},
		"everything of a description":  {`"prompt":null,"custom":false,"gpt_description":"a","instrumental":true,"vocal_gender":"f"`, "", ""},
		"custom a text":                {`"custom":"true"`, "custom", "true or false"},
		"prompt a number":              {`"prompt":1`, "prompt", "string"},
		"nothing":                      {`"prompt":null`, "prompt", "prompt is required"},
		"prompt blank":                 {`"prompt":" "`, "prompt", "prompt is required"},
		"prompt empty":                 {`"prompt":""`, "prompt", "prompt is required"},
		"prompt empty, a description":  {`"prompt":"","gpt_description":"d"`, "", ""},
		"tags empty, instrumental":     {`"prompt":null,"tags":"","instrumental":true`, "prompt", "prompt is required"},
		"custom, a description":        {`"prompt":null,"custom":true,"gpt_description":"d"`, "prompt", "prompt is required"},
		"custom, description ignored":  {`"custom":true,"gpt_description":[1]`, "", ""},
		"not custom, only a prompt":    {`"custom":false`, "gpt_description", "gpt_description is required"},
		"not custom, blank":            {`"custom":false,"gpt_description":" \t"`, "gpt_description", "gpt_description is required"},
		"not custom, a number":         {`"custom":false,"gpt_description":7`, "gpt_description", "string"},
		"not custom, the rest ignored": {`"custom":false,"gpt_description":"d","prompt":1,"title":2,"tags":[],"negative_tags":{},"auto_lyrics":"x","style_weight":9,"weirdness_constraint":"y","audio_weight":-1`, "", ""},
		"a description makes it so":    {`"prompt":null,"gpt_description":"d","title":1,"tags":2`, "", ""},
		"tags, instrumental":           {`"prompt":null,"tags":"t","instrumental":true`, "", ""},
		"title, instrumental":          {`"prompt":null,"title":"t","instrumental":true`, "", ""},
		"tags, not instrumental":       {`"prompt":null,"tags":"t","instrumental":false`, "prompt", "prompt is required"},
		"tags, auto_lyrics":            {`"prompt":null,"tags":"t","auto_lyrics":true`, "", ""},
		"tags, no auto_lyrics":         {`"prompt":null,"tags":"t","auto_lyrics":false`, "prompt", "prompt is required"},
		"prompt, instrumental":         {`"instrumental":true`, "", ""},
		"blank tags, instrumental":     {`"prompt":null,"custom":true,"tags":" ","instrumental":true`, "prompt", "prompt is required, or one of tags and title"},
		"title a number":               {`"title":1`, "title", "string"},
		"tags a number":                {`"tags":1`, "tags", "string"},
		"instrumental so":              {`"prompt":null,"custom":false,"gpt_description":"d","instrumental":"yes"`, "instrumental", "true or false"},
		"auto_lyrics a text":           {`"auto_lyrics":"yes"`, "auto_lyrics", "true or false"},
		"vocal_gender of both":         {`"prompt":null,"custom":false,"gpt_description":"d","vocal_gender":"x"`, "vocal_gender", "m or f"},
		"version of both":              {`"prompt":null,"custom":false,"gpt_description":"d","version":"x"`, "version", "v4"},
	})
	for _, field := range []string{"style_weight", "weirdness_constraint", "audio_weight"} {
		maps.Copy(cases, map[string]fieldCase{
			field + " 0":      {`"` + field + `":0`, "", ""},
			field + " 1":      {`"` + field + `":1`, "", ""},
			field + " 0.65":   {`"` + field + `":0.65`, "", ""},
			field + " 1.01":   {`"` + field + `":1.01`, field, "number between 0 and 1"},
			field + " 2":      {`"` + field + `":2`, field, "number between 0 and 1"},
			field + " -0.01":  {`"` + field + `":-0.01`, field, "number between 0 and 1"},
			field + " -1":     {`"` + field + `":-1`, field, "number between 0 and 1"},
			field + " a text": {`"` + field + `":"0.5"`, field, "JSON number, not as a string"},
		})
	}
	return cases
}

func voiceCases() map[string]fieldCase {
	return joined(mediaCases("audio_url", func(value string) string { return `"audio_url":` + value }), map[string]fieldCase{
		"only what is required": {},
		"everything":            {`"audio_url":"https://media.example.com/b.mp3"`, "", ""},
		"audio_url null":        {`"audio_url":null`, "audio_url", "audio_url cannot be empty"},
		"audio_url empty":       {`"audio_url":""`, "audio_url", "audio_url cannot be empty"},
		"audio_url blank":       {`"audio_url":"  "`, "audio_url", "audio_url cannot be empty"},
		"version anything":      {`"version":{},"task_id":1`, "", ""},
	})
}

func replaceCases() map[string]fieldCase {
	return joined(textCases("", "infill_lyrics", "prompt", "title", "tags", "negative_tags"), map[string]fieldCase{
		"everything of the song": {`"audio_index":1,"start_s":0.5,"end_s":9,"infill_lyrics":"a","prompt":"b","title":"c","tags":"d","negative_tags":"e"`, "", ""},
		"version anything":       {`"version":1`, "", ""},
	})
}

func flowSongCases() map[string]fieldCase {
	numbers := joined(integerCases("bpm", 30, 300), integerCases("length", 1, 240), integerCases("seed", 0, 4294967295))
	return joined(textCases("", "title"), numbers, map[string]fieldCase{
		"only what is required": {},
		"everything":            {`"lyrics":"a","sound_prompt":"b","title":"c","bpm":90,"length":60,"seed":1`, "", ""},
		"nothing":               {`"sound_prompt":null`, "sound_prompt", "sound_prompt is required, or lyrics"},
		"sound blank":           {`"sound_prompt":" \t"`, "sound_prompt", "sound_prompt is required, or lyrics"},
		"sound a number":        {`"sound_prompt":1`, "sound_prompt", "string"},
		"lyrics alone":          {`"sound_prompt":null,"lyrics":"a"`, "", ""},
		"lyrics a number":       {`"lyrics":1`, "lyrics", "string"},
		"version anything":      {`"version":[]`, "", ""},
	})
}

func flowReplaceCases() map[string]fieldCase {
	return joined(textCases("", "title"), integerCases("seed", 0, 4294967295), map[string]fieldCase{
		"everything of the section": {`"start_s":0,"end_s":1,"instruction":"i","title":"t","seed":0`, "", ""},
		"instruction null":          {`"instruction":null`, "instruction", "instruction is required"},
		"instruction blank":         {`"instruction":" "`, "instruction", "instruction is required"},
		"instruction a number":      {`"instruction":1`, "instruction", "string"},
	})
}
