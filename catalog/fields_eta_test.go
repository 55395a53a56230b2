package catalog_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
)

func etaCases() map[string]fieldCase {
	cases := map[string]fieldCase{}
	for name, c := range promptCases(4096) {
		cases[strings.ReplaceAll(name, "prompt", "input")] = fieldCase{
			strings.ReplaceAll(c.fields, `"prompt"`, `"input"`), strings.ReplaceAll(c.param, "prompt", "input"), c.rule,
		}
	}
	maps.Copy(cases, map[string]fieldCase{
		"only what is required": {},
		"everything":            {`"input":"a","voice":"alloy","response_format":"pcm","speed":1.5,"instructions":"Whisper.","stream_format":"audio"`, "", ""},
		"voice null":            {`"voice":null`, "voice", "is required"},
		"voice empty":           {`"voice":""`, "voice", "is required"},
		"voice of nobody":       {`"voice":"bob"`, "voice", "alloy, ash, ballad"},
		"voice in capitals":     {`"voice":"Alloy"`, "voice", "alloy, ash, ballad"},
		"voice by id":           {`"voice":{"id":"voice_1"}`, "voice", ""},
		"format null":           {`"response_format":null`, "", ""},
		"format ogg":            {`"response_format":"ogg"`, "response_format", "mp3, opus, aac, flac, wav or pcm"},
		"format empty":          {`"response_format":""`, "", ""},
		"speed 0.24":            {`"speed":0.24`, "speed", "0.25"},
		"speed 0.245":           {`"speed":0.245`, "speed", "0.25"},
		"speed 0.25":            {`"speed":0.25`, "", ""},
		"speed 0.255":           {`"speed":0.255`, "", ""},
		"speed 1":               {`"speed":1.0`, "", ""},
		"speed 3.5":             {`"speed":3.5`, "", ""},
		"speed 4":               {`"speed":4`, "", ""},
		"speed 4.01":            {`"speed":4.01`, "speed", "4"},
		"speed 0":               {`"speed":0`, "speed", "0.25"},
		"speed a text":          {`"speed":"1"`, "speed", "JSON number, not as a string"},
		"instructions null":     {`"instructions":null`, "", ""},
		"instructions empty":    {`"instructions":""`, "", ""},
		"instructions, long":    {`"instructions":"` + strings.Repeat("狐", 100_000) + `"`, "", ""},
		"stream_format audio":   {`"stream_format":"audio"`, "", ""},
		"stream_format null":    {`"stream_format":null`, "", ""},
		"stream_format sse":     {`"stream_format":"sse"`, "stream_format", "must be audio"},
		"stream_format empty":   {`"stream_format":""`, "", ""},
		"stream_format a flag":  {`"stream_format":true`, "stream_format", "must be audio"},
		"instructions a list":   {`"instructions":["Whisper."]`, "instructions", "string"},
		"webhook a number":      {`"webhook":1`, "", ""}, // no field of this model's
		"metadata a list":       {`"metadata":[]`, "", ""},
	})
	for voice := range strings.FieldsSeq("alloy ash ballad cedar coral echo fable marin onyx nova sage shimmer verse") {
		cases["voice "+voice] = fieldCase{fmt.Sprintf(`"voice":%q`, voice), "", ""}
	}
	for format := range strings.FieldsSeq("mp3 opus aac flac wav pcm") {
		cases["format "+format] = fieldCase{fmt.Sprintf(`"response_format":%q`, format), "", ""}
	}
	return cases
}

// TestQuoteOfEta: code points are charged, blanks too.
func TestQuoteOfEta(t *testing.T) {
	t.Parallel()
	const id = "eta-4o-mini-tts"
	for input, characters := range map[string]int64{"a": 1, "日本": 2, "🦊 é": 3, " a\n": 3} {
		r, err := operation(t, id).Accept(parse(t, body(t, id, fmt.Sprintf(`"input":%q`, input))))
		if err != nil {
			t.Fatal(err)
		}
		want := []mediagate.Charge{{Item: id, Unit: mediagate.UnitCharacter, Quantity: characters, UnitPrice: 60}}
		if diff := cmp.Diff(want, r.Charges); diff != "" {
			t.Errorf("%q: %s", input, diff)
		}
	}
}
