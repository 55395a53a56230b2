package kernel_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

var schemas = kernel.NewSchemas(fstest.MapFS{"schema/draw.yaml": {Data: []byte(`
type: object
additionalProperties: false
required: [prompt]
properties:
  prompt: {type: string, maxLength: 3, pattern: '^[a-zäöü]*$'}
  size: {enum: [small, large]}
  count: {type: integer, minimum: 1, maximum: 9}
  on: {const: true}
  pens: {type: array, maxItems: 2, items: {type: object, additionalProperties: false, properties: {ink: {type: string}, lid: {type: boolean}}}}
dependentRequired: {size: [count]}
if: {properties: {prompt: {const: a}}}
then: {properties: {size: false}}
`)}})

func read(t *testing.T, body string) (kernel.Body, error) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	return schemas.Read(r, "draw", 100)
}

// The answer to a request names the first rule that the request breaks: the field and what is
// wrong with it.
func TestViolations(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct{ says, rule string }{
		`{"size":"small","x":1,"a":2}`:                {"a: unknown field", "additionalProperties"},
		`{"count":0}`:                                 {"prompt: is required", "required"},
		`{"prompt":"äöü","size":"small"}`:             {"count: is required with size", "required"},
		`{"prompt":"äöüa"}`:                           {"prompt: maxLength: got 4, want 3", "maxLength"},
		`{"prompt":"B"}`:                              {"prompt: must match ^[a-zäöü]*$", "pattern"},
		`{"prompt":7}`:                                {"prompt: got number, want string", "type"},
		`{"prompt":"b","size":"huge","count":1}`:      {"size: value must be one of 'small', 'large'", "enum"},
		`{"prompt":"b","on":false}`:                   {"on: value must be true", "const"},
		`{"prompt":"b","count":10}`:                   {"count: maximum: got 10, want 9", "maximum"},
		`{"prompt":"a","size":"small","count":1}`:     {"size: is not supported here", "additionalProperties"},
		`{"prompt":"b","pens":[{"ink":"x"},{"i":1}]}`: {"pens[1].i: unknown field", "additionalProperties"},
		`{"prompt":"b","pens":[{},{},{}]}`:            {"pens: maxItems: got 3, want 2", "maxItems"},
	} {
		_, err := read(t, body)
		v, ok := errors.AsType[*kernel.Violation](err)
		if !ok || v.Error() != want.says || v.Rule != want.rule {
			t.Errorf("%s: %v (%+v), want %q of %s", body, err, v, want.says, want.rule)
		}
	}
}

func TestReadBody(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{`: "not a JSON object", `[]`: "not a JSON object", `null`: "not a JSON object", `{} {}`: "not a JSON object",
		"{\"prompt\":\"\xff\"}": "not UTF-8", `{"prompt":"` + strings.Repeat("b", 100) + `"}`: "larger than 100 bytes",
	} {
		if _, err := read(t, body); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(`{"prompt":"b"}`))
	if _, err := schemas.Read(r, "draw", 100); err == nil {
		t.Error("a body of no type was read")
	}
	b, err := read(t, `{"prompt":"b","count":2,"pens":[{"ink":"x","lid":false},{}]}`)
	pens := b.List("pens")
	if err != nil || b.Text("prompt") != "b" || b.Int("count") != 2 || len(pens) != 2 || pens[0].Text("ink") != "x" {
		t.Errorf("%v, %v", b, err)
	}
	if pens[0].Flag("lid", true) || !pens[1].Flag("lid", true) || b.Text("pens.ink") != "" || b.Int("size") != 0 {
		t.Errorf("what is not there: %v", b)
	}
}

func TestSaying(t *testing.T) {
	t.Parallel()
	for want, texts := range map[string][]string{
		"a":                   {"", "a", "b"},
		"[[sandbox: ref=1]]b": {"a", "[[sandbox: ref=1]]b", "[[sandbox: ref=2]]"},
		"":                    {"", ""},
	} {
		if got := kernel.DirectiveText(texts...); got != want {
			t.Errorf("%q of %q", got, texts)
		}
	}
}
