package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
)

func TestParseObject(t *testing.T) {
	t.Parallel()
	got, err := parseObject([]byte(" {\"a\":[1,2.50,-1e3,{\"b\":null}],\"c\":\"😀\\ud83d\\ude00\",\"d\":true,\"e\":{}} \n"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"a": []any{json.Number("1"), json.Number("2.50"), json.Number("-1e3"), map[string]any{"b": nil}},
		"c": "😀😀", "d": true, "e": map[string]any{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// nested makes a value whose innermost container is at the given depth when
// the value itself is a member of the body.
func nested(depth int, opening, closing string) string {
	return `{"a":` + strings.Repeat(opening, depth-1) + strings.Repeat(closing, depth-1) + `}`
}

func TestParseObjectBounds(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		body    string
		message string // part of it; empty: accepted
		param   string
	}{
		"empty object":            {body: `{}`},
		"empty body":              {body: ``, message: "ends too early"},
		"blank body":              {body: " \n", message: "ends too early"},
		"null":                    {body: `null`, message: "must be a JSON object"},
		"array":                   {body: `[]`, message: "must be a JSON object"},
		"number":                  {body: `1`, message: "must be a JSON object"},
		"text":                    {body: `"a"`, message: "must be a JSON object"},
		"no JSON":                 {body: `prompt=a`, message: "error at byte 0"},
		"cut":                     {body: `{"a":1`, message: "ends too early"},
		"cut in text":             {body: `{"a":"b`, message: "ends too early"},
		"trailing object":         {body: `{}{}`, message: "data follows"},
		"trailing garbage":        {body: `{} x`, message: "data follows"},
		"trailing NUL":            {body: "{}\x00", message: "data follows"},
		"trailing white space":    {body: "{}\r\n\t "},
		"trailing comma":          {body: `{"a":[1,]}`, message: "error at byte"},
		"single quotes":           {body: `{'a':1}`, message: "error at byte 1"},
		"leading zero":            {body: `{"a":01}`, message: "error at byte"},
		"NaN":                     {body: `{"a":NaN}`, message: "error at byte"},
		"comment":                 {body: `{/**/}`, message: "error at byte"},
		"control character":       {body: "{\"a\":\"\x01\"}", message: "error at byte"},
		"byte order mark":         {body: "\xef\xbb\xbf{}", message: "byte order mark"},
		"invalid UTF-8":           {body: "{\"a\":\"\xff\"}", message: "UTF-8"},
		"invalid UTF-8 in a name": {body: "{\"\xff\":1}", message: "UTF-8"},
		"encoded surrogate":       {body: "{\"a\":\"\xed\xa0\x80\"}", message: "UTF-8"},
		"lone high surrogate":     {body: `{"a":"\ud800"}`, message: "surrogate", param: "a"},
		"lone low surrogate":      {body: `{"a":"\udc00"}`, message: "surrogate", param: "a"},
		"swapped surrogates":      {body: `{"a":"\ude00\ud83d"}`, message: "surrogate", param: "a"},
		"surrogate in a name":     {body: `{"\ud800":1}`, message: "surrogate"},
		"NUL":                     {body: `{"a":{"b":["x","\u0000"]}}`, message: "U+0000", param: "a.b[1]"},
		"NUL in a name":           {body: `{"a\u0000":1}`, message: "U+0000"},
		"U+0001":                  {body: `{"a":"\u0001"}`},
		"duplicate":               {body: `{"a":1,"a":1}`, message: `"a" is there twice`, param: "a"},
		"duplicate by escape":     {body: `{"\u0061":1,"a":2}`, message: "twice", param: "a"},
		"duplicate deep":          {body: `{"x":[{"a":1,"a":2}]}`, message: "twice", param: "x[0].a"},
		"same name in siblings":   {body: `{"x":[{"a":1},{"a":2}]}`},
		"largest double":          {body: `{"a":1.7976931348623157e308}`},
		"too large a number":      {body: `{"a":1e309}`, message: "too large", param: "a"},
		"too small a number":      {body: `{"unknown":{"b":-1e309}}`, message: "too large", param: "unknown.b"},
		"long integer":            {body: `{"a":` + strings.Repeat("9", 308) + `}`},
		"too long an integer":     {body: `{"a":` + strings.Repeat("9", 310) + `}`, message: "too large", param: "a"},
		"tiny number":             {body: `{"a":1e-400}`},
		"64 arrays deep":          {body: nested(64, "[", "]")},
		"65 arrays deep":          {body: nested(65, "[", "]"), message: "64 levels"},
		"64 objects deep":         {body: strings.Repeat(`{"a":`, 63) + `{}` + strings.Repeat(`}`, 63)},
		"65 objects deep":         {body: strings.Repeat(`{"a":`, 64) + `{}` + strings.Repeat(`}`, 64), message: "64 levels"},
		"10,000 deep":             {body: nested(10_000, "[", "]"), message: "64 levels"},
		"10,000 deep and cut":     {body: `{"a":` + strings.Repeat("[", 10_000), message: "64 levels"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object, err := parseObject([]byte(test.body))
			if test.message == "" {
				if err != nil || object == nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			e := domainError(err)
			if err == nil || e.Kind != mediagate.KindInvalid {
				t.Fatalf("error = %v, want invalid", err)
			}
			if !strings.Contains(e.Message, test.message) {
				t.Errorf("message %q lacks %q", e.Message, test.message)
			}
			if e.Param != test.param && test.param != "" {
				t.Errorf("param = %q, want %q", e.Param, test.param)
			}
		})
	}
}

func FuzzParseObject(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":[1,"b",null,{"c":true}]}`, `{"a":1,"a":2}`, "\xff", `{"a":1e309}`, `[[`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		object, err := parseObject(body)
		if (err == nil) == (object == nil) {
			t.Fatalf("object %v with error %v", object, err)
		}
		// What we take, everybody takes, and sees the same in it.
		var same map[string]any
		if err == nil && json.Unmarshal(body, &same) != nil {
			t.Fatalf("accepted, but encoding/json refuses it: %q", body)
		}
	})
}
