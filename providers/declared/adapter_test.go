package declared_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/declared"
	"github.com/mediagate/mediagate/providers/providertest"
)

// changed returns the adapter of the plain file with replacements in it.
func changed(t *testing.T, replacements ...string) providers.Adapter {
	t.Helper()
	text := strings.NewReplacer(replacements...).Replace(plain(t))
	v, err := declared.Read("v.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return v.Adapter()
}

// open opens a channel at a vendor with these replies.
func open(t *testing.T, a providers.Adapter, replies ...providertest.Reply) (*providertest.Vendor, providers.Provider) {
	t.Helper()
	vendor := providertest.NewVendor(t, replies...)
	p, err := a.Open(mediagate.Channel{
		Name: "v-a", Provider: "v", BaseURL: vendor.URL, Credentials: mediagate.Secrets(map[string]string{"api_key": "k"}),
	}, providers.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := p.(providers.Closer); ok {
		t.Cleanup(c.Close)
	}
	return vendor, p
}

var film = mediagate.Job{TaskID: "task_1", ExternalID: "task_1", Upstream: "film-1", Operation: "video", Params: []byte(`{"prompt":"a red kite","duration":5}`)}

// beyond lists expressions that never end or make more than memory can hold.
var beyond = map[string]string{
	"recursion":               `def f: f; f`,
	"recursion that grows":    `def f: 1 + f; f`,
	"a loop":                  `last(range(1e12))`,
	"a list without end":      `[repeat("x")]`,
	"outputs without end":     `repeat("x")`,
	"a text doubled":          `reduce range(60) as $i ("x"; . + .)`,
	"a text doubled in a def": `def f($n): if $n == 0 then . else . + . | f($n - 1) end; "x" | f(60)`,
	"a text twice in a text":  `reduce range(60) as $i ("x"; "\(.)\(.)")`,
	"a list doubled":          `reduce range(60) as $i ([1]; . + .)`,
	"a part shared":           `reduce range(60) as $i ([1]; [., .])`,
	"members doubled":         `reduce range(60) as $i ({}; {a: ., b: .})`,
	"an assignment doubled":   `reduce range(60) as $i ({}; .a = . | .b = .a)`,
	"a number squared":        `reduce range(60) as $i (9999999999999999999; . * .)`,
	"escapes of escapes":      `reduce range(60) as $i ("\""; tojson)`,
	"a long join":             `[range(1500)] | join([range(1500)] | tojson)`,
	"a text multiplied":       `"x" * 1000000000`,
	"a long replacement":      `([range(30000)] | tojson) as $x | "x" | gsub("x"; $x)`,
	"a long match":            `[range(30000)] | tojson | [match(""; "g")]`,
	"texts in a list":         doubled + `[range(1000) | $x + "a"]`,
	"texts in an update":      doubled + `[range(1000)] | .[] |= $x + "a"`,
	"texts in a text":         doubled + `"\($x)\($x)` + strings.Repeat(`\($x)`, 100) + `"`,
	"texts in a recursion":    doubled + `def f: ($x + "a") as $y | if . > 500 then [$y] else . + 1 | f | . + [$y] end; 0 | f`,
	"paths of a deep list":    `reduce range(3000) as $i (1; [.]) | [paths]`,
	"matches in a list":       `([range(2000) | "x"] | join("")) as $x | [range(100) | $x | [match(""; "g")]]`,
	"lists of a text":         `([range(2000) | "x"] | join("")) as $x | [range(2000) | $x / ""]`,
	"a list less a list":      `[range(9000)] | . - [.[] + 1]`,
	"a list in a list":        `[range(9000) | 0] | index([range(4000) | 0] + [1])`,
	"a list by a list":        `[range(9000) | 0] | .[[range(4000) | 0] + [1]]`,
	"a text in a text":        `reduce range(16) as $i ("x"; . + .) | index("xy")`,
	"long keys":               `[range(100)] | sort_by([., [range(300)]])`,
	"a number of many digits": `reduce range(15) as $i ("9"; . + .) | tonumber`,
}

// doubled makes a text of half a megabyte.
const doubled = `reduce range(19) as $i ("x"; . + .) as $x | `

// The memory for values on the way is bounded, too, not only that for outputs.
func TestMemory(t *testing.T) { //nolint:paralleltest // it counts what the process allocates
	for name, expression := range beyond {
		adapter := changed(t, `"{$model, prompt, seconds: .duration}"`, "'["+expression+"] | length'")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := adapter.Supports(film, nil)
		runtime.ReadMemStats(&after)
		if made := (after.TotalAlloc - before.TotalAlloc) >> 20; err == nil || made > 200 {
			t.Errorf("%s: %v after %d MiB", name, err, made)
		}
	}
}

// An expression that exceeds its limits fails the call. Before the call this proves that there is
// no job; after the call there may be a job.
func TestBounds(t *testing.T) {
	t.Parallel()
	for name, expression := range beyond {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const good = `{"id":"job-7","status":"finished"}`
			value := "'[" + expression + "] | length'"
			vendor, p := open(t, changed(t, `"{$model, prompt, seconds: .duration}"`, value))
			if _, err := p.Submit(t.Context(), film); !mediagate.Is(err, mediagate.KindInvalid) || len(vendor.Requests()) != 0 {
				t.Errorf("in a body: %v", err)
			}
			if name == "a text multiplied" || name == "a long join" || name == "a list by a list" {
				return // an error of the expression, which finds nothing in an answer
			}
			_, p = open(t, changed(t, "id: .id #", "id: "+value+" #"), providertest.Plain(200, good))
			if _, err := p.Submit(t.Context(), film); !mediagate.Is(err, mediagate.KindAmbiguous) {
				t.Errorf("in the answer to a submit: %v", err)
			}
			_, p = open(t, changed(t, "status: .status", "status: "+value), providertest.Plain(200, good))
			if _, err := p.Poll(t.Context(), mediagate.JobRef{JobID: "job-7", Operation: "video"}); !mediagate.Is(err, mediagate.KindTransient) {
				t.Errorf("in the answer to a poll: %v", err)
			}
		})
	}
}

// The request itself does not count as output, because it may contain a large picture.
func TestLongRequest(t *testing.T) {
	t.Parallel()
	job := film
	job.Params = []byte(`{"duration":"` + strings.Repeat("x", 8<<20) + `"}`)
	if err := changed(t).Supports(job, nil); err != nil {
		t.Error(err)
	}
}

// A submission is ambiguous if its answer is too long or its id cannot be part of a path.
func TestStrangeAnswers(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"a long number":     `{"id":"job-7","n":` + strings.Repeat("9", 1<<20) + `}`,
		"20 MB":             `{"id":"job-7","x":"` + strings.Repeat("x", 20<<20) + `"}`,
		"a slash":           `{"id":"7/../8"}`,
		"dots":              `{"id":".."}`,
		"a line break":      `{"id":"7\n8"}`,
		"a space":           `{"id":"7 8"}`,
		"an object":         `{"id":{"a":1}}`,
		"an id of 300":      `{"id":"` + strings.Repeat("7", 300) + `"}`,
		"another type":      `[{"id":"job-7"}]`,
		"a text":            `"job-7"`,
		"a page":            `<html><body>Welcome</body></html>`,
		"an error beside":   `{"id":"job-7","error":{"code":"novel"}}`,
		"more than one":     `{"id":"job-7"} {}`,
		"a name with no id": `{"ID":"job-7"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vendor, p := open(t, changed(t), providertest.Plain(200, answer))
			if sub, err := p.Submit(t.Context(), film); !mediagate.Is(err, mediagate.KindAmbiguous) || len(vendor.Requests()) != 1 {
				t.Errorf("%+v, %v after %d calls", sub, err, len(vendor.Requests()))
			}
		})
	}
}

// An id is escaped in a path.
func TestEscapedID(t *testing.T) {
	t.Parallel()
	vendor, p := open(t, changed(t), providertest.Plain(200, `{"id":"7?a=b#%41"}`), providertest.Plain(200, `{"id":"7?a=b#%41","status":"working"}`))
	sub, err := p.Submit(t.Context(), film)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Poll(t.Context(), sub.Ref); err != nil {
		t.Fatal(err)
	}
	if got, want := vendor.Requests()[1].Path, "/jobs/7%3Fa=b%23%2541"; got != want {
		t.Errorf("path %s, want %s", got, want)
	}
}

// Numbers stay as written, members keep the order of the file, and null members of objects are
// left out.
func TestBody(t *testing.T) {
	t.Parallel()
	const expression = `"{$model, prompt, seconds: .duration}"`
	for body, want := range map[string]string{
		expression: `{"model":"film-1","prompt":"a red kite","seconds":5.0}`,
		`'{z: 1, a: {y: null, "x y": [.prompt, null], b: 2}}'`:                `{"z":1,"a":{"x y":["a red kite",null],"b":2}}`,
		`'{n: (.duration * 2), big: 12345678901234567890, x: 0.5, t: "<&>"}'`: `{"n":10,"big":12345678901234567890,"x":0.5,"t":"<&>"}`,
	} {
		vendor, p := open(t, changed(t, expression, body), providertest.Plain(200, `{"id":"job-7"}`))
		job := film
		job.Params = []byte(`{"prompt":"a red kite","duration":5.0}`)
		if _, err := p.Submit(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		if got := vendor.Requests()[0].Body; got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

// The error of an expression does not quote the request.
func TestDiscreetExpressions(t *testing.T) {
	t.Parallel()
	err := changed(t, `"{$model, prompt, seconds: .duration}"`, `'{a: (.prompt | tonumber)}'`).Supports(film, nil)
	if !mediagate.Is(err, mediagate.KindInvalid) || strings.Contains(err.Error(), "kite") {
		t.Errorf("the error is %v", err)
	}
}

// A wrong lookup fails its example.
func TestExamplesOfLookups(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("testdata/vendors/drawings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ old, text, want string }{
		"as it is":     {},
		"another path": {"path: /drawings?reference={$task}", "path: /drawing?reference={$task}", "calls[1]: is GET /drawing?reference=task_example, want GET /drawings?reference=task_example"},
		"another id":   {"task: .reference", "task: .id", "examples[2]: find: the answer is about another job"},
		"absence":      {"answer: .found | arrays | .[0]", "answer: .found | arrays | .[]", "examples[3]: find: the answer does not say whether there is such a job"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, err := declared.Read("drawings.yaml", []byte(strings.Replace(string(file), tt.old, tt.text, 1)), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := v.Test(t.Context()); tt.want == "" && err != nil || tt.want != "" && !strings.Contains(fmt.Sprint(err), tt.want) {
				t.Errorf("the error is %v, want %q", err, tt.want)
			}
		})
	}
}

// A request passes if a refusal's expression gives false or null.
func TestRequestsThatPass(t *testing.T) {
	t.Parallel()
	for when, refused := range map[string]bool{"false": false, "null": false, "true": true, "empty": true, `error("x")`: true, ".duration": true} {
		refuse := "    refuse: [{field: duration, when: '" + when + "', message: duration is bad}]\n    submit:"
		if err := changed(t, "    submit:", refuse).Supports(film, nil); mediagate.Is(err, mediagate.KindInvalid) != refused {
			t.Errorf("%s: %v", when, err)
		}
	}
}

// The error of a failed example says where and how the example differs.
func TestExamplesThatFail(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ old, text, want string }{
		"another body":    {"seconds: 5}", "seconds: 6}", `v.yaml:50:5: examples[0]: calls[0].body: is {"model":"film-1","prompt":"A red kite","seconds":5}, want {"model":"film-1","prompt":"A red kite","seconds":6}`},
		"another path":    {"path: /jobs/job-7\n", "path: /jobs/job-8\n", "calls[1]: is GET /jobs/job-7, want GET /jobs/job-8"},
		"another method":  {"- method: GET", "- method: PUT", "calls[1]: is GET /jobs/job-7, want PUT /jobs/job-7"},
		"another file":    {"7.mp4\", type: video/mp4}]\n", "8.mp4\", type: video/mp4}]\n", `examples[0].task.files: is [{"type":"video/mp4","url":"https://cdn.example.com/7.mp4"}], want [{"type":"video/mp4","url":"https://cdn.example.com/8.mp4"}]`},
		"another end":     {"status: completed", "status: failed", `examples[0].task.status: is "completed", want "failed"`},
		"a call too many": {"status: working, percent: 40", "status: finished, videos: [{url: \"https://cdn.example.com/7.mp4\", type: video/mp4}]", "calls: 1 of 3 were not made"},
		"a word":          {"done: [finished]", "done: [ready]", "v.yaml:50:5: examples[0]: poll.words: finished is in no list of words"},
		"no word":         {"status: .status", "status: .state", "examples[0]: poll.status: finds no word in the answer"},
		"no id":           {"id: .id #", "id: .no #", "examples[0]: submit.id: the answer to the submit has no id"},
		"another job":     {"job: .id #", "job: .videos #", "examples[0]: poll: the answer names no job"},
		"a role":          {".videos[] | {url, type}", "'.videos[] | {url, type, role: \"still\"}'", "examples[0]: result.files: still is no role; known: cover, wav, film, grid, stem"},
		"no link":         {"{url, type}", "{type}", "examples[0]: result.files: a file has no link as its url"},
		"a 5xx":           {"answer: {status: 201, body: {id: job-7}}", "answer: {status: 503, body: {error: {code: no_credit}}}", "examples[0]: errors.kinds[2]: does not count: an answer of HTTP 503 proves nothing"},
		"a page":          {"answer: {status: 201, body: {id: job-7}}", "answer: {status: 429, body: slow}", "examples[0]: errors.kinds[4]: does not count: the answer is no JSON object"},
		"a refusal":       {"    submit:", "    refuse: [{field: duration, when: .duration | numbers | select(. > 5), message: m}]\n    submit:", "operations.video: the request cannot be written: refuse[0].when gave no output"},
		"a cancel":        {"model: film-1\n", "model: film-1\n    cancel: true\n", "examples[0]: calls[1]: is POST /jobs/job-7/cancel, want GET /jobs/job-7"},
		"a fault of jq":   {".duration}\"", ".duration + \\\"a\\\"}\"", "operations.video: the request cannot be written: cannot add: number (5) and string (\"a\")"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(plain(t), tt.old, tt.text, 1)
			if name == "another file" { // the last one is the task's
				at := strings.LastIndex(plain(t), "7.mp4")
				text = plain(t)[:at] + "8" + plain(t)[at+1:]
			}
			v, err := declared.Read("v.yaml", []byte(text), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := v.Test(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v, want %q", err, tt.want)
			}
		})
	}
}
