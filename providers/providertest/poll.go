package providertest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
)

// ask is Poll or Find.
type ask func(p providers.Provider, ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error)

func (s Suite) poll(t *testing.T) { s.reports(t, s.Ref, providers.Provider.Poll) }

// afterPoll tests the calls that a poll also makes when the job has succeeded. While one of them
// fails, the job has not ended.
func (s Suite) afterPoll(t *testing.T) {
	s.breakCalls(t, s.AfterPoll, s.Word(s.word(mediagate.JobSucceeded)), 1, mediagate.KindTransient,
		func(ctx context.Context, p providers.Provider) error {
			_, err := p.Poll(ctx, s.Ref)
			return err
		})
}

// find tests lookups by our own id, for adapters that support them.
func (s Suite) find(t *testing.T) {
	if !s.operation(t).Find {
		return
	}
	ref := s.Ref
	ref.JobID = ""
	s.reports(t, ref, func(p providers.Provider, ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
		return p.(providers.Finder).Find(ctx, ref)
	})
	t.Run("reference of a job", func(t *testing.T) {
		t.Parallel()
		_, p := s.connect(t)
		got, err := p.(providers.Finder).Ref(s.Job)
		if err != nil {
			t.Fatal(err)
		}
		want := s.Submission.Ref
		want.JobID = ""
		diff(t, "ref", want, got)
	})
}

// reports tests the answers that polls and lookups share.
func (s Suite) reports(t *testing.T, ref mediagate.JobRef, do ask) {
	words := map[string]mediagate.JobState{}
	for _, word := range []string{"", "SUCCEEDED!", "Succeed", "paused"} {
		words[word] = mediagate.JobUnknown
	}
	maps.Copy(words, s.Words)
	for word, state := range words {
		t.Run("word "+word, func(t *testing.T) {
			t.Parallel()
			s.report(t, s.asked(t, ref, do, s.Word(word)), state)
		})
	}

	// An answer that proves nothing does not prove that the job does not exist or has ended.
	rows := meaninglessReplies(s.Word(s.word(mediagate.JobRunning)), mediagate.KindTransient)
	for name, reply := range s.ProtocolErrors {
		rows[name] = Row{Reply: reply, Kind: mediagate.KindTransient}
	}
	maps.Copy(rows, s.PollRows)
	s.rows(t, rows, func(ctx context.Context, p providers.Provider) error {
		_, err := do(p, ctx, ref)
		return err
	})
	t.Run("HTML 401", func(t *testing.T) {
		t.Parallel()
		vendor, p := s.connect(t, Reply{Status: http.StatusUnauthorized, Body: "<html>"})
		_, err := do(p, t.Context(), ref)
		s.check(t, err, Row{Kind: mediagate.KindTransient}, vendor.URL)
	})

	s.incomplete(t, ref, do)
	s.nulCharacters(t, ref, do)
	t.Run("failure repeats secrets", func(t *testing.T) {
		t.Parallel()
		report := s.asked(t, ref, do, Reply{Echo: func(r Request) string { return s.Failed(s.secretText(r)).Body }})
		s.checkNoSecrets(t, report.Outcome.Failure.Message, "")
	})
	t.Run("failure without words", func(t *testing.T) {
		t.Parallel()
		report := s.asked(t, ref, do, s.Failed(""))
		if f := report.Outcome.Failure; f.Message == "" || f.Code != mediagate.CodeGenerationFailed {
			t.Errorf("failure = %+v, want generation_failed with a message", f)
		}
	})
}

// asked returns the report that the adapter makes of an answer.
func (s Suite) asked(t *testing.T, ref mediagate.JobRef, do ask, reply Reply) mediagate.Report {
	t.Helper()
	_, p := s.connect(t, reply)
	got, err := do(p, t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (s Suite) report(t *testing.T, got mediagate.Report, want mediagate.JobState) {
	t.Helper()
	if got.State != want {
		t.Errorf("state = %q, want %q", got.State, want)
	}
	if got.Percent < -1 || got.Percent > 99 {
		t.Errorf("percent = %d", got.Percent)
	}
	diff(t, "ref", s.Ref, got.Ref)
	if got.Named == s.NoJobID {
		t.Errorf("the report says that the answer names the job: %v", got.Named)
	}
	ended := want == mediagate.JobSucceeded || want == mediagate.JobFailed
	if got.Incomplete || ended != (got.Outcome != nil) {
		t.Errorf("in state %q the report is %+v", want, got)
	}
	if o := got.Outcome; o != nil {
		if o.Succeeded != (want == mediagate.JobSucceeded) || o.Succeeded && len(o.Media) == 0 {
			t.Errorf("in state %q the outcome is %+v", want, o)
		}
		s.outcome(t, o, "")
	}
}

// incomplete tests successes without some or all of their media.
func (s Suite) incomplete(t *testing.T, ref mediagate.JobRef, do ask) {
	if len(s.WithoutMedia)+len(s.AfterPoll) == 0 {
		t.Error("WithoutMedia is empty: nothing shows what the adapter makes of a success without media")
	}
	for name, reply := range s.WithoutMedia {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := s.asked(t, ref, do, reply)
			o := got.Outcome
			if got.State != mediagate.JobSucceeded || !got.Incomplete || o == nil || o.Succeeded ||
				o.Failure == nil || o.Failure.Code != mediagate.CodeResultUnavailable {
				t.Errorf("a success without media is %+v, its outcome %+v", got, o)
			}
		})
	}
	for name, partial := range s.Partial {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := s.asked(t, ref, do, partial.Reply)
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
}

// ends matches the closing quote of each string value in a JSON text.
var ends = regexp.MustCompile(`"[,}\]]`)

// nulCharacters expects that no U+0000 in an answer reaches the report, because the database
// cannot store it.
func (s Suite) nulCharacters(t *testing.T, ref mediagate.JobRef, do ask) {
	good := s.Word(s.word(mediagate.JobSucceeded)).Body
	for i, end := range ends.FindAllStringIndex(good, -1) {
		t.Run(fmt.Sprintf("U+0000 in text %d", i+1), func(t *testing.T) {
			t.Parallel()
			_, p := s.connect(t, Reply{Body: good[:end[0]] + `\u0000` + good[end[0]:]})
			got, err := do(p, t.Context(), ref)
			if err != nil {
				return
			}
			encoded, err := json.Marshal(got)
			if err != nil || strings.Contains(string(encoded), `\u0000`) {
				t.Errorf("encoded is %s, %v", encoded, err)
			}
		})
	}
}

// word returns a status word for the state.
func (s Suite) word(state mediagate.JobState) string {
	for word, is := range s.Words {
		if is == state {
			return word
		}
	}
	return ""
}

// batch tests PollAll: one call, whose answers belong to the jobs that they name, in any order.
func (s Suite) batch(t *testing.T) {
	most := s.operation(t).Batch
	if most < 2 || s.NoBatch {
		return
	}
	ask := func(p providers.Provider, ctx context.Context, refs []mediagate.JobRef) ([]providers.Answer, error) {
		return p.(providers.Batcher).PollAll(ctx, refs)
	}
	jobs := func(n int) (refs []mediagate.JobRef, ids []string) {
		for i := range n {
			ref := s.Ref
			ref.JobID = fmt.Sprintf("%s%d", s.Ref.JobID, i)
			refs, ids = append(refs, ref), append(ids, ref.JobID)
		}
		return refs, ids
	}
	running, succeeded := s.word(mediagate.JobRunning), s.word(mediagate.JobSucceeded)
	t.Run("in another order", func(t *testing.T) {
		t.Parallel()
		refs, ids := jobs(min(most, 5))
		call := s.BatchCall(ids)
		words := slices.Repeat([]string{running}, len(ids))
		words[1] = succeeded
		slices.Reverse(ids)
		slices.Reverse(words)
		vendor, p := s.connect(t, s.Batch(ids, words))
		answers, err := ask(p, t.Context(), refs)
		if err != nil || len(answers) != len(refs) || len(vendor.Unrouted()) != 1 {
			t.Fatalf("%d answers of %d, %d requests, %v", len(answers), len(refs), len(vendor.Unrouted()), err)
		}
		diff(t, "call", call, vendor.Unrouted()[0].String())
		for i, a := range answers {
			want := mediagate.JobRunning
			if i == 1 {
				want = mediagate.JobSucceeded
			}
			if a.Err != nil || a.Report.State != want || a.Report.Ref.JobID != refs[i].JobID ||
				!a.Report.Named || (a.Report.Outcome != nil) != (i == 1) {
				t.Errorf("job %d: %+v, %v", i, a.Report, a.Err)
			}
		}
	})
	refs, ids := jobs(2)
	t.Run("one left out, another's among them", func(t *testing.T) {
		t.Parallel()
		_, p := s.connect(t, s.Batch([]string{"9" + ids[0], ids[1]}, []string{succeeded, running}))
		answers, err := ask(p, t.Context(), refs)
		if err != nil || len(answers) != 2 {
			t.Fatalf("%d answers, %v", len(answers), err)
		}
		if !mediagate.Is(answers[0].Err, mediagate.KindNotFound) && !mediagate.Is(answers[0].Err, mediagate.KindTransient) {
			t.Errorf("the job that was left out: %+v, %v", answers[0].Report, answers[0].Err)
		}
		if answers[1].Err != nil || answers[1].Report.State != mediagate.JobRunning {
			t.Errorf("the other: %+v, %v", answers[1].Report, answers[1].Err)
		}
	})
	rows := meaninglessReplies(s.Batch(ids, []string{running, running}), mediagate.KindTransient)
	maps.Copy(rows, s.BatchRows)
	s.rows(t, rows, func(ctx context.Context, p providers.Provider) error {
		_, err := ask(p, ctx, refs)
		return err
	})
}
