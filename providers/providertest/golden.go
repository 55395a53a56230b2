package providertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
)

// Golden plays each txtar file that matches the pattern. It submits the job of job.json and
// params.json, and then polls once for each further answer-N. These files are the inputs. request-N
// and result-N are the outputs; Golden compares them, or rewrites them if update is set. If a step
// makes several calls, answer-N.2 and so on follow answer-N, with as many requests. The first line
// of an answer is its HTTP status and, if the body is not JSON, its content type. Together the
// files must show that each field reaches the vendor.
func (s Suite) Golden(t *testing.T, pattern string, update bool) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files at %s (%v)", pattern, err)
	}
	var all []golden
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		g := readGolden(t, archive)
		all = append(all, g)
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			got := s.play(t, g)
			got.Comment = archive.Comment
			if update {
				if err := os.WriteFile(file, txtar.Format(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			diff(t, file, string(txtar.Format(archive)), string(txtar.Format(got)))
		})
	}
	t.Run("heeded", func(t *testing.T) {
		t.Parallel()
		s.fieldsSent(t, all)
	})
}

// golden holds the inputs of a golden file: a job and the vendor's answers.
type golden struct {
	job    mediagate.Job
	inputs map[string][]byte // by name
}

// readGolden reads the inputs of a golden file. The Source in job.json may also state what the
// database does not store: whether the account made it (own), and the link to its file (url).
func readGolden(t *testing.T, file *txtar.Archive) golden {
	t.Helper()
	g := golden{inputs: map[string][]byte{}}
	for _, f := range file.Files {
		if f.Name == "job.json" || f.Name == "params.json" || strings.HasPrefix(f.Name, "answer-") {
			g.inputs[f.Name] = f.Data
		}
	}
	var about struct {
		Source struct {
			Own bool   `json:"own"`
			URL string `json:"url"`
		} `json:"Source"`
	}
	if err := errors.Join(
		json.Unmarshal(g.inputs["job.json"], &g.job), json.Unmarshal(g.inputs["job.json"], &about),
	); err != nil {
		t.Fatal(err)
	}
	if g.job.Source != nil {
		g.job.Source.Own, g.job.Source.URL = about.Source.Own, about.Source.URL
	}
	g.job.Params = g.inputs["params.json"]
	return g
}

func (g golden) params(t *testing.T) (params map[string]json.RawMessage) {
	t.Helper()
	if err := json.Unmarshal(g.job.Params, &params); err != nil {
		t.Fatal(err)
	}
	return params
}

// replies returns the vendor's answers to a step.
func (g golden) replies(t *testing.T, step int) (replies []Reply) {
	t.Helper()
	for {
		answer, ok := g.inputs["answer-"+callOf(step, len(replies))]
		if !ok {
			return replies
		}
		first, body, _ := strings.Cut(string(answer), "\n")
		first, kind, _ := strings.Cut(strings.TrimSpace(first), " ")
		status, err := strconv.Atoi(first)
		if err != nil {
			t.Fatalf("an answer begins with its HTTP status: %v", err)
		}
		reply := Reply{Status: status, Body: body}
		if kind != "" {
			reply.Header = map[string]string{"Content-Type": kind}
		}
		replies = append(replies, reply)
	}
}

func (s Suite) play(t *testing.T, g golden) *txtar.Archive {
	out := &txtar.Archive{}
	add := func(name string, data []byte) {
		out.Files = append(out.Files, txtar.File{Name: name, Data: data})
	}
	add("job.json", g.inputs["job.json"])
	add("params.json", g.inputs["params.json"])

	vendor := NewVendor(t)
	p := s.Open(t, vendor.URL, providers.Options{Version: "1.2.3"})
	var ref mediagate.JobRef
	for step := 0; ; step++ {
		replies := g.replies(t, step)
		if step > 0 && len(replies) == 0 {
			return out
		}
		vendor.reset(replies...)
		var result any
		var err error
		if step == 0 {
			job := g.job
			job.Inputs, job.Sink = Inputs(s.Files), NewSink()
			var sub mediagate.Submission
			sub, err = s.send(t.Context(), p, job)
			result, ref = sub, sub.Ref
		} else {
			result, err = p.Poll(t.Context(), ref)
		}
		requests := vendor.Requests()
		for i := range max(len(requests), len(replies)) {
			name := callOf(step, i)
			if i < len(requests) {
				add("request-"+name, formatRequest(t, requests[i]))
			}
			if i < len(replies) {
				add("answer-"+name, g.inputs["answer-"+name])
			}
		}
		add(fmt.Sprintf("result-%d", step), formatResult(t, result, err))
	}
}

// callOf names a call of a step, such as "1" and "1.2". Both arguments count from 0.
func callOf(step, i int) string {
	if i == 0 {
		return strconv.Itoa(step)
	}
	return fmt.Sprintf("%d.%d", step, i+1)
}

// formatRequest formats a request with its headers, except those that differ from run to run. It
// shows only the scheme of credentials.
func formatRequest(t *testing.T, r Request) []byte {
	t.Helper()
	kind, options, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	body := r.Body
	if boundary := options["boundary"]; boundary != "" {
		body = strings.ReplaceAll(strings.ReplaceAll(body, boundary, "BOUNDARY"), "\r\n", "\n")
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s\n", r.Method, r.Path)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		value := r.Header.Get(name)
		switch {
		case name == "Authorization":
			scheme, _, _ := strings.Cut(value, " ")
			value = scheme + " ..."
		case strings.HasSuffix(name, "-Key"), strings.HasSuffix(name, "-Secret"):
			value = "..."
		case name == "Content-Type":
			value = kind
		}
		if name != "Content-Length" {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	switch {
	case body == "":
	case kind == "application/json":
		b.WriteString("\n")
		if err := json.Indent(&b, []byte(body), "", "  "); err != nil {
			t.Fatalf("the request's body is no JSON: %v", err)
		}
		b.WriteString("\n")
	default:
		b.WriteString("\n" + strings.TrimRight(signed.ReplaceAllString(body, "..."), "\n") + "\n")
	}
	return b.Bytes()
}

// signed matches tokens, which depend on the time.
var signed = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+`)

func formatResult(t *testing.T, v any, err error) []byte {
	t.Helper()
	if err != nil {
		return []byte(err.Error() + "\n")
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
