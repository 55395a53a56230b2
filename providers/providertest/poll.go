package providertest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
)

func silent() *log.Logger { return log.New(io.Discard, "", 0) }

// ask is Poll or Find.
type ask func(p providers.Provider, ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error)

// poll covers the answers that a poll and a lookup have in common.
func (s Suite) poll(t *testing.T, ref mediagate.JobRef, do ask) {
	t.Helper()
	for word, state := range s.Words {
		t.Run("word "+word, func(t *testing.T) {
			t.Parallel()
			s.report(t, ref, do, word, state)
		})
	}
	for _, word := range []string{"", "SUCCEEDED!", "Succeed", "paused"} {
		t.Run("unknown word "+word, func(t *testing.T) {
			t.Parallel()
			s.report(t, ref, do, word, mediagate.JobUnknown)
		})
	}
	good := s.Word(anyWord(s.Words, mediagate.JobRunning))
	for name, reply := range s.strangeReplies(good) {
		if _, ok := s.PollRows[name]; ok {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.unclear(t, ref, do, reply)
		})
	}
	for name, reply := range s.Lies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.unclear(t, ref, do, reply)
		})
	}
	if len(s.Bare) == 0 {
		t.Error("Bare is empty: nothing shows what the adapter makes of a success without media")
	}
	s.dirty(t, ref, do)
	for name, reply := range s.Bare {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vendor := s.Vendor(t, reply)
			got, err := do(s.Open(t, vendor.URL, providers.Options{}), t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			if got.State != mediagate.JobSucceeded || !got.Incomplete || got.Outcome == nil {
				t.Fatalf("a success without media is %+v", got)
			}
			if f := got.Outcome.Failure; got.Outcome.Succeeded || f == nil || f.Code != mediagate.CodeResultUnavailable {
				t.Errorf("its outcome is %+v, want a failure with result_unavailable", got.Outcome)
			}
		})
	}
	for name, partial := range s.Partial {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vendor := s.Vendor(t, partial.Reply)
			got, err := do(s.Open(t, vendor.URL, providers.Options{}), t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			if got.State != mediagate.JobSucceeded || !got.Incomplete || got.Outcome == nil || !got.Outcome.Succeeded {
				t.Fatalf("a success without some of its media is %+v", got)
			}
			diff(t, "media", partial.Media, got.Outcome.Media)
			var clips []string
			if got.Outcome.Made != nil {
				for _, clip := range got.Outcome.Made.Clips {
					clips = append(clips, clip.ID)
				}
			}
			diff(t, "clips", partial.Clips, clips)
		})
	}
	t.Run("failure repeats secrets", func(t *testing.T) {
		t.Parallel()
		vendor := s.Vendor(t, Reply{Echo: func(r Request) string { return s.Failed(s.leak(r)).Body }})
		report, err := do(s.Open(t, vendor.URL, providers.Options{}), t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		s.discreet(t, report.Outcome.Failure.Message, vendor.URL)
	})
	t.Run("failure without words", func(t *testing.T) {
		t.Parallel()
		vendor := s.Vendor(t, s.Failed(""))
		report, err := do(s.Open(t, vendor.URL, providers.Options{}), t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		if f := report.Outcome.Failure; f.Message == "" || f.Code != mediagate.CodeGenerationFailed {
			t.Errorf("failure = %+v, want generation_failed with a message", f)
		}
	})
	t.Run("refused connection", func(t *testing.T) {
		t.Parallel()
		address := "http://" + closedPort(t)
		_, err := do(s.Open(t, address, short()), t.Context(), ref)
		s.check(t, err, Row{Kind: mediagate.KindTransient}, address)
	})
	t.Run("HTML 401", func(t *testing.T) {
		t.Parallel()
		vendor := s.Vendor(t, Reply{Status: http.StatusUnauthorized, Body: "<html>"})
		_, err := do(s.Open(t, vendor.URL, providers.Options{}), t.Context(), ref)
		s.check(t, err, Row{Kind: mediagate.KindTransient}, vendor.URL)
	})
}

// dirty expects that no text of an answer brings a U+0000 into what is told of the
// job.
func (s Suite) dirty(t *testing.T, ref mediagate.JobRef, do ask) {
	t.Helper()
	const mark = "\u0000"
	good := s.Word(anyWord(s.Words, mediagate.JobSucceeded))
	for i, body := range spoiled(good.Body, mark) {
		t.Run(fmt.Sprintf("U+0000 in text %d", i+1), func(t *testing.T) {
			t.Parallel()
			reply := good
			reply.Body = body
			vendor := s.Vendor(t, reply)
			got, err := do(s.Open(t, vendor.URL, providers.Options{}), t.Context(), ref)
			if err != nil {
				return
			}
			told, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(told), `\u0000`) {
				t.Errorf("of %s\nis told %s", body, told)
			}
		})
	}
}

// spoiled is a JSON text as often as it has values that are texts, with a mark at
// the end of another one each time.
func spoiled(body, mark string) []string {
	var all []string
	for at := 0; ; at++ {
		decoder := json.NewDecoder(strings.NewReader(body))
		decoder.UseNumber()
		var v any
		if decoder.Decode(&v) != nil {
			return all
		}
		left := at
		text, _ := json.Marshal(spoil(v, mark, &left))
		if left >= 0 {
			return all
		}
		all = append(all, string(text))
	}
}

// spoil marks the text before which there are so many others; left is negative
// once it was met.
func spoil(v any, mark string, left *int) any {
	switch v := v.(type) {
	case string:
		if *left--; *left == -1 {
			return v + mark
		}
	case []any:
		for i := range v {
			v[i] = spoil(v[i], mark, left)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			v[name] = spoil(v[name], mark, left)
		}
	}
	return v
}

// unclear expects that a reply proves nothing: least of all that there is no
// such job, or that it has ended.
func (s Suite) unclear(t *testing.T, ref mediagate.JobRef, do ask, reply Reply) {
	t.Helper()
	vendor := s.Vendor(t, reply)
	_, err := do(s.Open(t, vendor.URL, hasty(reply)), t.Context(), ref)
	s.check(t, err, Row{Kind: mediagate.KindTransient}, vendor.URL)
	if n := len(vendor.InLine()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

func (s Suite) report(t *testing.T, ref mediagate.JobRef, do ask, word string, want mediagate.JobState) {
	t.Helper()
	vendor := s.Vendor(t, s.Word(word))
	got, err := do(s.Open(t, vendor.URL, providers.Options{}), t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if got.State != want {
		t.Errorf("state = %q, want %q", got.State, want)
	}
	if got.Percent < -1 || got.Percent > 99 {
		t.Errorf("percent = %d", got.Percent)
	}
	diff(t, "ref", s.Ref, got.Ref)
	if got.Named == s.Unnamed {
		t.Errorf("the report says that the answer names the job: %v", got.Named)
	}
	ended := want == mediagate.JobSucceeded || want == mediagate.JobFailed
	switch {
	case got.Incomplete:
		t.Errorf("the report is incomplete: %+v", got)
	case ended != (got.Outcome != nil):
		t.Errorf("outcome = %+v in state %q", got.Outcome, want)
	case !ended:
	case got.Outcome.Succeeded != (want == mediagate.JobSucceeded):
		t.Errorf("succeeded = %v in state %q", got.Outcome.Succeeded, want)
	case got.Outcome.Succeeded && len(got.Outcome.Media) == 0:
		t.Error("a success without media")
	case !got.Outcome.Succeeded && (got.Outcome.Failure == nil || got.Outcome.Failure.Message == ""):
		t.Error("a failure without a reason")
	}
}

// find covers lookups by our own id, for adapters that have them.
func (s Suite) find(t *testing.T) {
	t.Helper()
	ref := s.Ref
	ref.JobID = ""
	if !s.operation(t).Find {
		return
	}
	probe := s.Open(t, "http://127.0.0.1:1", short())
	find := func(p providers.Provider, ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
		return p.(providers.Finder).Find(ctx, ref)
	}
	s.poll(t, ref, find)
	s.rows(t, s.PollRows, func(ctx context.Context, p providers.Provider) error {
		_, err := find(p, ctx, ref)
		return err
	})
	t.Run("reference of a job", func(t *testing.T) {
		t.Parallel()
		got, err := probe.(providers.Finder).Ref(s.Job)
		if err != nil {
			t.Fatal(err)
		}
		want := s.Submission.Ref
		want.JobID = ""
		diff(t, "ref", want, got)
	})
}

func anyWord(words map[string]mediagate.JobState, state mediagate.JobState) string {
	for word, s := range words {
		if s == state {
			return word
		}
	}
	return ""
}
