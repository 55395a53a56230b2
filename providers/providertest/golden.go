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

// Golden plays each txtar file that the pattern matches: the job of job.json
// and params.json is submitted and then polled, once for each answer-N. Those
// are inputs; request-N and result-N are what came of it, compared or, with
// update, rewritten. A step that makes several calls has answer-N.2 and so on
// after answer-N, and as many requests. The first line of an answer is its
// HTTP status and, where it is no JSON, its type. Together they must show that no field is lost on its way.
func (s Suite) Golden(t *testing.T, pattern string, update bool) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files at %s (%v)", pattern, err)
	}
	var archives []*txtar.Archive
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, archive)
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
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
	t.Run("heeded", func(t *testing.T) {
		t.Parallel()
		s.heeded(t, archives)
	})
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
	job := readJob(t, inputs["job.json"])
	job.Params = inputs["params.json"]
	job.Inputs, job.Sink = Inputs(s.Files), NewSink()
	add := func(name string, data []byte) {
		out.Files = append(out.Files, txtar.File{Name: name, Data: data})
	}
	add("job.json", inputs["job.json"])
	add("params.json", inputs["params.json"])

	vendor := NewVendor(t)
	p := s.Open(t, vendor.URL, providers.Options{Version: "1.2.3"})
	var ref mediagate.JobRef
	seen := 0
	for n := range len(inputs) { // more steps than there are inputs cannot be
		var answers [][]byte
		for {
			answer, ok := inputs["answer-"+callOf(n, len(answers))]
			if !ok {
				break
			}
			answers = append(answers, answer)
			vendor.Add(parseAnswer(t, answer))
		}
		if n > 0 && len(answers) == 0 {
			break
		}
		var result any
		var err error
		if n == 0 {
			var sub mediagate.Submission
			sub, err = s.send(t.Context(), p, job)
			result, ref = sub, sub.Ref
		} else {
			result, err = p.Poll(t.Context(), ref)
		}
		requests := vendor.Requests()[seen:]
		seen += len(requests)
		for i := range max(len(requests), len(answers)) {
			if i < len(requests) {
				add("request-"+callOf(n, i), formatRequest(t, requests[i]))
			}
			if i < len(answers) {
				add("answer-"+callOf(n, i), answers[i])
			}
		}
		add(fmt.Sprintf("result-%d", n), formatResult(t, result, err))
	}
	return out
}

// readJob reads job.json, whose Source may also tell what no row keeps: whether
// the account made it (own), and the link to its file (url).
func readJob(t *testing.T, data []byte) (job mediagate.Job) {
	t.Helper()
	var about struct {
		Source struct {
			Own bool   `json:"own"`
			URL string `json:"url"`
		} `json:"Source"`
	}
	if err := errors.Join(json.Unmarshal(data, &job), json.Unmarshal(data, &about)); err != nil {
		t.Fatal(err)
	}
	if job.Source != nil {
		job.Source.Own, job.Source.URL = about.Source.Own, about.Source.URL
	}
	return job
}

// callOf names a step's call, both counted from 0, as "1" and "1.2".
func callOf(step, i int) string {
	if i == 0 {
		return strconv.Itoa(step)
	}
	return fmt.Sprintf("%d.%d", step, i+1)
}

func parseAnswer(t *testing.T, data []byte) Reply {
	t.Helper()
	first, body, _ := strings.Cut(string(data), "\n")
	first, kind, _ := strings.Cut(strings.TrimSpace(first), " ")
	status, err := strconv.Atoi(first)
	if err != nil {
		t.Fatalf("an answer begins with its HTTP status: %v", err)
	}
	reply := Reply{Status: status, Body: body}
	if kind != "" {
		reply.Header = map[string]string{"Content-Type": kind}
	}
	return reply
}

// formatRequest writes a request with all its headers, but for those that
// differ from run to run. Credentials are shown by their scheme.
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

// signed are tokens of the time of their making.
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
