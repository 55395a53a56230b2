package kernel_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// read reads a body.
func read(t *testing.T, body string) (*kernel.Object, error) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return kernel.ReadObject(r, 100)
}

func TestReadObject(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{}`: "", `{`: "not a JSON object", `[]`: "not a JSON object", `null`: "not a JSON object", `{} {}`: "trailing data",
		"{\"a\":\"\xff\"}": "not UTF-8", `{"a":"` + strings.Repeat("b", 100) + `"}`: "larger than 100 bytes",
	} {
		if _, err := read(t, body); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}

// Each way to read a field refuses what is none of its kind.
func TestFields(t *testing.T) {
	t.Parallel()
	for want, test := range map[string]struct {
		body string
		read func(in *kernel.Object)
	}{
		"b: unknown field":            {`{"a":1,"b":2}`, func(in *kernel.Object) { in.Only("a") }},
		"a: must be a string":         {`{"a":1}`, func(in *kernel.Object) { in.Text("a") }},
		"a: has 3 characters":         {`{"a":"äöü"}`, func(in *kernel.Object) { in.TextMax("a", 2) }},
		"a: must be one of on, off":   {`{"a":"no"}`, func(in *kernel.Object) { in.Word("a", "on", "on", "off") }},
		"a: must be a boolean":        {`{"a":"true"}`, func(in *kernel.Object) { in.Flag("a") }},
		"a: must be an integer":       {`{"a":"1"}`, func(in *kernel.Object) { in.Integer("a", 0, 9) }},
		"a: must be an integer from":  {`{"a":10}`, func(in *kernel.Object) { in.Integer("a", 0, 9) }},
		"b: must be an integer from":  {`{"b":-1}`, func(in *kernel.Object) { in.Integer("b", 0, 9) }},
		"c: must be an integer from":  {`{"c":1.5}`, func(in *kernel.Object) { in.Integer("c", 0, 9) }},
		"a: must be an object":        {`{"a":[]}`, func(in *kernel.Object) { in.Nested("a") }},
		"a.b: unknown field":          {`{"a":{"b":1}}`, func(in *kernel.Object) { in.Nested("a").Only() }},
		"a: must be an array":         {`{"a":{}}`, func(in *kernel.Object) { in.Objects("a", 9) }},
		"a: has 2 items":              {`{"a":[{},{}]}`, func(in *kernel.Object) { in.Objects("a", 1) }},
		"a: item 1 must be an object": {`{"a":[{},1]}`, func(in *kernel.Object) { in.Objects("a", 9) }},
		"a[1].b: unknown field":       {`{"a":[{},{"b":1}]}`, func(in *kernel.Object) { in.Objects("a", 9)[1].Only() }},
		"a: must be an http":          {`{"a":"there"}`, func(in *kernel.Object) { in.Link("a") }},
		"b: must be an http":          {`{"b":"ftp://a.example.com"}`, func(in *kernel.Object) { in.Link("b") }},
	} {
		in, err := read(t, test.body)
		if err != nil {
			t.Fatal(err)
		}
		if test.read(in); in.Err() == nil || !strings.HasPrefix(in.Err().Error(), want) {
			t.Errorf("%s: %v, want %q", test.body, in.Err(), want)
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]struct {
		v     float64
		ok    bool
		share string // what is wrong with it
	}{
		`0`: {0, true, ""}, `1`: {1, true, ""}, `0.5`: {0.5, true, ""}, `1.01`: {1.01, true, "from 0 to 1"}, `-0.01`: {-0.01, true, "from 0 to 1"},
		`"1"`: {0, false, "must be a number"}, `null`: {0, false, "must be a number"}, `1e999`: {0, false, "must be a number"},
	} {
		number := func(name string) (*kernel.Object, float64, bool) {
			in, err := read(t, `{"n":`+value+`}`)
			if err != nil {
				t.Fatal(err)
			}
			in.Share(name)
			v, ok := in.Number(name)
			return in, v, ok
		}
		in, v, ok := number("n")
		said := ""
		if in.Err() != nil {
			said = in.Err().Error()
		}
		if ok != want.ok || ok && v != want.v || !strings.Contains(said, want.share) || (said == "") != (want.share == "") {
			t.Errorf("%s: %g, %v, %q", value, v, ok, said)
		}
		if in, _, ok := number("absent"); ok || in.Err() != nil {
			t.Errorf("absent: %v, %v", ok, in.Err())
		}
	}
}

func TestSaying(t *testing.T) {
	t.Parallel()
	for want, texts := range map[string][]string{
		"a":                   {"", "a", "b"},
		"[[sandbox: ref=1]]b": {"a", "[[sandbox: ref=1]]b", "[[sandbox: ref=2]]"},
		"":                    {"", ""},
	} {
		if got := kernel.Saying(texts...); got != want {
			t.Errorf("%q of %q", got, texts)
		}
	}
}
