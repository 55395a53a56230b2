package catalog_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
)

// loaded is the catalog without a folder of its operator's; it never changes.
var loaded = sync.OnceValues(func() (*catalog.Catalog, error) { return catalog.Load("") })

func load(t *testing.T) *catalog.Catalog {
	t.Helper()
	c, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// operation returns an operation of a built-in model by its key.
func operation(t *testing.T, key string) *catalog.Operation {
	t.Helper()
	return operationOf(t, load(t), key)
}

// operationOf finds an operation by its key: the id of a model that has one, or
// the id and the endpoint with a blank between.
func operationOf(t *testing.T, c *catalog.Catalog, key string) *catalog.Operation {
	t.Helper()
	id, endpoint, several := strings.Cut(key, " ")
	m, ok := c.Model(id)
	if !ok || several != (len(m.Operations()) > 1) {
		t.Fatalf("no model of the key %s", key)
	}
	if !several {
		return m.Operations()[0]
	}
	o, ok := m.Operation(endpoint)
	if !ok {
		t.Fatalf("no operation of the key %s", key)
	}
	return o
}

// keyOf returns the key of an operation.
func keyOf(o *catalog.Operation, id string) string {
	if len(o.Model.Operations()) == 1 {
		return id
	}
	return id + " " + o.Endpoint
}

// keyed is an operation with its key, and the key by which its cases are found:
// those of an alias are its model's.
type keyed struct {
	key, cases string
	*catalog.Operation
}

// operations are those of all built-in models, aliases among them.
func operations(t *testing.T) []keyed {
	t.Helper()
	var list []keyed
	for _, m := range load(t).Models() {
		for _, o := range m.Operations() {
			list = append(list, keyed{keyOf(o, m.ID), keyOf(o, m.Canonical), o})
		}
	}
	return list
}

// parse parses a body as the API does.
func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var body map[string]any
	if err := d.Decode(&body); err != nil {
		t.Fatalf("%v in %.200s", err, text)
	}
	return body
}

// needed are the fields beside a prompt without which a model takes no request.
var needed = joined(artNeeded(), map[string]map[string]string{
	"beta-q3":            {"image_urls": `["https://media.example.com/0.png"]`},
	"beta-q3-mix":        {"image_urls": `["https://media.example.com/0.png"]`},
	"eta-4o-mini-tts":    {"input": `"Ahoy!"`, "voice": `"verse"`},
	"gamma2.7-videoedit": {"video_urls": `["https://media.example.com/a.mp4"]`},

	songs:         {"prompt": `"a boat"`},
	remasters:     {"task_id": `"task_1"`},
	stemsAll:      {"task_id": `"task_1"`},
	voices:        {"audio_url": `"https://media.example.com/a.mp3"`},
	replacements:  {"task_id": `"task_1"`, "start_s": `1`, "end_s": `30`},
	samples:       {"task_id": `"task_1"`, "prompt": `"a boat"`},
	flowSongs:     {"sound_prompt": `"folk"`},
	flowStems:     {"clip_id": `"c"`},
	flowReplacing: {"clip_id": `"c"`, "start_s": `1`, "end_s": `30`, "instruction": `"a solo"`},
})

// body returns a minimal valid body of the model with the fields added, which are JSON without
// the braces.
func body(t *testing.T, key, fields string) string {
	t.Helper()
	given := parse(t, "{"+fields+"}")
	id, _, several := strings.Cut(key, " ")
	var parts []string
	if _, ok := given["model"]; !ok {
		parts = append(parts, fmt.Sprintf(`"model":%q`, id))
	}
	if _, ok := given["prompt"]; !ok && !several {
		parts = append(parts, `"prompt":"a boat"`)
	}
	for _, name := range slices.Sorted(maps.Keys(needed[key])) {
		if _, ok := given[name]; !ok {
			parts = append(parts, fmt.Sprintf(`%q:%s`, name, needed[key][name]))
		}
	}
	if fields != "" {
		parts = append(parts, fields)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// refusal checks that err is an invalid request naming the field.
func refusal(t *testing.T, err error, param string) string {
	t.Helper()
	var e *mediagate.Error
	switch {
	case err == nil:
		t.Fatalf("accepted, want a refusal of %s", param)
	case !errors.As(err, &e):
		t.Fatalf("a foreign error: %v", err)
	case e.Kind != mediagate.KindInvalid || e.Param != param:
		t.Fatalf("%v error of %q: %s; want one of %q", e.Kind, e.Param, e.Message, param)
	case !strings.Contains(e.Message, param):
		t.Fatalf("the message does not name %s: %s", param, e.Message)
	}
	return e.Message
}

// quoted returns a JSON string of n times the text.
func quoted(text string, n int) string {
	b, err := json.Marshal(strings.Repeat(text, n))
	if err != nil {
		panic(err) // a string always marshals
	}
	return string(b)
}

// urls returns a JSON array of n media URLs.
func urls(n int) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(`"https://media.example.com/%d.png"`, i)
	}
	return "[" + strings.Join(items, ",") + "]"
}

// elements returns a JSON array of n subjects.
func elements(n int) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(`{"element_id":%d}`, i+1)
	}
	return "[" + strings.Join(items, ",") + "]"
}

// named returns a JSON object of a subject with n pictures.
func named(name string, n int) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(`"https://media.example.com/%s/%d.png"`, url.PathEscape(name), i+1)
	}
	return fmt.Sprintf(`{"name":%s,"description":"the %s","element_input_urls":[%s]}`, quoted(name, 1), name, strings.Join(items, ","))
}

// shots returns the field multi_prompt with shots of these durations.
func shots(durations ...int) string {
	items := make([]string, len(durations))
	for i, d := range durations {
		items[i] = fmt.Sprintf(`{"index":%d,"prompt":"shot","duration":%d}`, i+1, d)
	}
	return `"multi_prompt":[` + strings.Join(items, ",") + `]`
}
