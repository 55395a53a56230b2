package catalog_test

import (
	"maps"
	"strings"
)

func etaCases() map[string]fieldCase {
	cases := map[string]fieldCase{}
	for name, c := range promptCases(4096) {
		cases[strings.ReplaceAll(name, "prompt", "input")] = fieldCase{
			strings.ReplaceAll(c.fields, `"prompt"`, `"input"`), strings.ReplaceAll(c.param, "prompt", "input"), c.rule,
		}
	}
	voices := strings.Fields("alloy ash ballad cedar coral echo fable marin onyx nova sage shimmer verse")
	maps.Copy(cases, choiceCases("voice", "bob", voices...))
	maps.Copy(cases, choiceCases("response_format", "ogg", "mp3", "opus", "aac", "flac", "wav", "pcm"))
	maps.Copy(cases, map[string]fieldCase{
		"only what is required": {},
		"everything":            {`"input":"a","voice":"alloy","response_format":"pcm","speed":1.5,"instructions":"Whisper.","stream_format":"audio"`, "", ""},
		"voice empty":           {`"voice":""`, "voice", "is required"},
		"speed 0.245":           {`"speed":0.245`, "speed", "0.25"},
		"speed 0.255":           {`"speed":0.255`, "", ""},
		"speed 4":               {`"speed":4`, "", ""},
		"speed 4.01":            {`"speed":4.01`, "speed", "4"},
		"speed a text":          {`"speed":"1"`, "speed", "JSON number, not as a string"},
		"instructions, long":    {`"instructions":"` + strings.Repeat("狐", 100_000) + `"`, "", ""},
		"stream_format sse":     {`"stream_format":"sse"`, "stream_format", "must be audio"},
		"instructions a list":   {`"instructions":["Whisper."]`, "instructions", "string"},
		"webhook a number":      {`"webhook":1`, "", ""}, // no field of this model's
		"metadata a list":       {`"metadata":[]`, "", ""},
	})
	return cases
}
