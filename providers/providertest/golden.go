package providertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
)

// Golden plays each txtar file that the pattern matches: the job of job.json
// and params.json is submitted and then polled, once for each answer-N. Those
// are inputs; request-N and result-N are what came of it, compared or, with
// update, rewritten. The first line of an answer is its HTTP status.
func (s Suite) Golden(t *testing.T, pattern string, update bool) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files at %s (%v)", pattern, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := s.play(t, archive)
			if update {
				if err := os.WriteFile(file, txtar.Format(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			diff(t, file, string(txtar.Format(archive)), string(txtar.Format(got)))
		})
	}
}

func (s Suite) play(t *testing.T, in *txtar.Archive) *txtar.Archive {
	t.Helper()
	inputs := map[string][]byte{}
	out := &txtar.Archive{Comment: in.Comment}
	for _, f := range in.Files {
		if f.Name == "job.json" || f.Name == "params.json" || strings.HasPrefix(f.Name, "answer-") {
			inputs[f.Name] = f.Data
		}
	}
	var job mediagate.Job
	if err := json.Unmarshal(inputs["job.json"], &job); err != nil {
		t.Fatal(err)
	}
	job.Params = inputs["params.json"]
	add := func(name string, data []byte) {
		out.Files = append(out.Files, txtar.File{Name: name, Data: data})
	}
	add("job.json", inputs["job.json"])
	add("params.json", inputs["params.json"])

	vendor := NewVendor(t)
	p := s.Open(t, vendor.URL, providers.Options{Version: "1.2.3"})
	var ref mediagate.JobRef
	for n := 0; ; n++ {
		answer, ok := inputs["answer-"+strconv.Itoa(n)]
		if ok {
			vendor.Add(parseAnswer(t, answer))
		} else if n > 0 {
			return out
		}
		var result any
		var err error
		if n == 0 {
			var sub mediagate.Submission
			sub, err = p.Submit(t.Context(), job)
			result, ref = sub, sub.Ref
		} else {
			result, err = p.Poll(t.Context(), ref)
		}
		if requests := vendor.Requests(); len(requests) > n {
			add(fmt.Sprintf("request-%d", n), formatRequest(t, requests[n]))
		}
		if ok {
			add("answer-"+strconv.Itoa(n), answer)
		}
		add(fmt.Sprintf("result-%d", n), formatResult(t, result, err))
	}
}

func parseAnswer(t *testing.T, data []byte) Reply {
	t.Helper()
	first, body, _ := strings.Cut(string(data), "\n")
	status, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		t.Fatalf("an answer begins with its HTTP status: %v", err)
	}
	return Reply{Status: status, Body: body}
}

// formatRequest writes a request with all its headers, but for those that
// differ from run to run. Credentials are shown by their scheme.
func formatRequest(t *testing.T, r Request) []byte {
	t.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s\n", r.Method, r.Path)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		value := r.Header.Get(name)
		if name == "Authorization" {
			scheme, _, _ := strings.Cut(value, " ")
			value = scheme + " ..."
		}
		if name != "Content-Length" {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	if r.Body != "" {
		b.WriteString("\n")
		if err := json.Indent(&b, []byte(r.Body), "", "  "); err != nil {
			t.Fatalf("the request's body is no JSON: %v", err)
		}
		b.WriteString("\n")
	}
	return b.Bytes()
}

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
