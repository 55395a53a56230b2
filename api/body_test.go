package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/internal/limit"
)

// whole keeps all fields.
var whole = &catalog.FieldMask{Whole: true}

func TestParseObject(t *testing.T) {
	t.Parallel()
	got, err := parseObject([]byte(" {\"a\":[1,2.50,-1e3,{\"b\":null}],\"c\":\"😀\\ud83d\\ude00\",\"d\":true,\"e\":{}} \n"), whole)
	must(t, err)
	want := map[string]any{
		"a": []any{json.Number("1"), json.Number("2.50"), json.Number("-1e3"), map[string]any{"b": nil}},
		"c": "😀😀", "d": true, "e": map[string]any{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// nested returns a value whose innermost container has the given depth if the value is a member of
// the body.
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
		"empty body":              {body: ``, message: "the body is empty"},
		"blank body":              {body: " \n", message: "the body is empty"},
		"null":                    {body: `null`, message: "must be a JSON object"},
		"array":                   {body: `[]`, message: "must be a JSON object"},
		"number":                  {body: `1`, message: "must be a JSON object"},
		"text":                    {body: `"a"`, message: "must be a JSON object"},
		"no JSON":                 {body: `prompt=a`, message: "error at byte 0"},
		"cut":                     {body: `{"a":1`, message: "ends too early"},
		"cut in text":             {body: `{"a":"b`, message: "ends too early"},
		"trailing object":         {body: `{}{}`, message: "data follows"},
		"trailing NUL":            {body: "{}\x00", message: "data follows"},
		"trailing white space":    {body: "{}\r\n\t "},
		"single quotes":           {body: `{'a':1}`, message: "error at byte 1"},
		"NaN":                     {body: `{"a":NaN}`, message: "error at byte"},
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
		"20,000 values":           {body: `{"a":[` + strings.Repeat("0,", 19_997) + `0]}`},
		"20,001 values":           {body: `{"a":[` + strings.Repeat("0,", 19_998) + `0]}`, message: "more than 20000 values"},
		"20,000 members":          {body: members(19_999)},
		"20,001 members":          {body: members(20_000), message: "more than 20000 values"},
		"20,001 empty arrays":     {body: `{"a":[` + strings.Repeat("[],", 19_998) + `[]]}`, message: "more than 20000 values"},
		"a million values":        {body: `{"a":[` + strings.Repeat("0,", 1_000_000) + `0]}`, message: "more than 20000 values"},
		"escaped escape and NUL":  {body: `{"a":"\\u0000\\\u0000"}`, message: "U+0000", param: "a"},
		"escaped escape":          {body: `{"a":"\\u0000"}`},
		"10,000 deep and cut":     {body: `{"a":` + strings.Repeat("[", 10_000), message: "64 levels"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object, err := parseObject([]byte(test.body), whole)
			for kept, outline := range map[string]*catalog.FieldMask{
				"nothing": {}, "a": {Fields: map[string]*catalog.FieldMask{"a": {}}},
				"two of a": {Fields: map[string]*catalog.FieldMask{"a": {Item: &catalog.FieldMask{}, Items: 2}}},
			} {
				// What is not kept is judged all the same.
				if _, verdict := parseObject([]byte(test.body), outline); fmt.Sprint(verdict) != fmt.Sprint(err) {
					t.Errorf("keeping %s: %v, else: %v", kept, verdict, err)
				}
			}
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

// members returns an object of n fields.
func members(n int) string {
	var b strings.Builder
	for i := range n {
		_, _ = fmt.Fprintf(&b, `,"%d":0`, i)
	}
	return "{" + b.String()[1:] + "}"
}

func TestParseKeepsTheFieldMask(t *testing.T) {
	t.Parallel()
	keep := &catalog.FieldMask{Fields: map[string]*catalog.FieldMask{
		"text": {}, "all": whole,
		"list": {Item: &catalog.FieldMask{Fields: map[string]*catalog.FieldMask{"known": {}}}, Items: 2},
	}}
	for name, test := range map[string]struct{ body, kept string }{
		"known":               {`{"text":"a","all":[1,{"b":[2]}]}`, `{"text":"a","all":[1,{"b":[2]}]}`},
		"unknown":             {`{"other":{"text":[1]},"text":"a","more":"b"}`, `{"text":"a"}`},
		"unknown, nested":     {`{"list":[{"known":1,"other":{"known":2}}]}`, `{"list":[{"known":1}]}`},
		"too many items":      {`{"list":[{"known":1},{},{"known":3},4]}`, `{"list":[{"known":1},{}]}`},
		"inside of a text":    {`{"text":{"a":1}}`, `{"text":{}}`},
		"items of a text":     {`{"text":[1,[2]]}`, `{"text":[]}`},
		"null and no content": {`{"text":null,"all":{},"list":[]}`, `{"text":null,"all":{},"list":[]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseObject([]byte(test.body), keep)
			must(t, err)
			want, err := parseObject([]byte(test.kept), whole)
			must(t, err)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestWorstBodyIsSmall parses bodies that once took fifty times their size: small values in
// unread fields. It runs alone, since it counts the allocations of the process.
func TestWorstBodyIsSmall(t *testing.T) { //nolint:paralleltest // see above
	models := BuiltIn(t)
	mask := models.FieldMask("")
	for name, field := range map[string]string{
		"an unknown field": `"other":[%s]`, "metadata": `"metadata":{"other":[%s]}`, "a text": `"prompt":[%s]`,
		"a list": `"image_urls":[%s]`, "an item": `"element_list":[{"name":[%s]}]`, "a number": `"n":[%s]`,
	} {
		item := `{"` + strings.Repeat("x", 40) + `":{}},`
		body := []byte(`{"model":"alpha-v3",` + fmt.Sprintf(field, strings.Repeat(item, 9_900)+"0") + `,"filler":"` + strings.Repeat("y", 500_000) + `"}`)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := parseObject(body, mask)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; err != nil || took > 100<<10 {
			t.Errorf("%s: a body of %d KiB takes %d KiB, %v", name, len(body)>>10, took>>10, err)
		}
	}
}

// TestParsingWaitsAsItsAccount checks that large bodies of different accounts are parsed in turn.
// It does not check the order of the answers, since a parser may be delayed after its permit.
func TestParsingWaitsAsItsAccount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		parsers := limit.New("", 1)
		s := &Server{cfg: Config{Limits: &limit.Process{Parsers: parsers}}}
		raw := []byte(`{"other":"` + strings.Repeat("x", firstBuffer) + `"}`)
		busy, _ := parsers.TryAcquire("somebody", 1)
		done := make(chan string, 2)
		for _, account := range []string{"one", "another"} {
			c := &call{Context: echo.New().NewContext(httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody), nil), server: t.Context()}
			c.caller = &caller{key: mediagate.Key{AccountID: account}}
			go func() {
				if _, err := s.parse(c, raw, nil); err != nil {
					t.Error(err)
				}
				done <- account
			}()
		}
		synctest.Wait()
		if !parsers.Uses("one") || !parsers.Uses("another") || parsers.Uses("nobody") || len(done) > 0 {
			t.Errorf("while another body is parsed %d of two are done, and they do not wait as their accounts", len(done))
		}
		busy.Release()
		for range 2 {
			if account := <-done; parsers.Uses(account) {
				t.Errorf("%s holds its turn", account)
			}
		}
	})
}

func FuzzParseObject(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":[1,"b",null,{"c":true}]}`, `{"a":1,"a":2}`, "\xff", `{"a":1e309}`, `[[`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		object, err := parseObject(body, whole)
		if (err == nil) == (object == nil) {
			t.Fatalf("object %v with error %v", object, err)
		}
		if _, verdict := parseObject(body, &catalog.FieldMask{}); fmt.Sprint(verdict) != fmt.Sprint(err) {
			t.Fatalf("%v when nothing is kept, else %v", verdict, err)
		}
		// What we take, everybody takes, and sees the same in it.
		var same map[string]any
		if err == nil && json.Unmarshal(body, &same) != nil {
			t.Fatalf("accepted, but encoding/json refuses it: %q", body)
		}
	})
}
