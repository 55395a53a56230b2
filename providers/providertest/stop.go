package providertest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
)

// cancel covers the end of a job by our wish: one call, and whatever is
// unclear about it may be tried again.
func (s Suite) cancel(t *testing.T) {
	t.Helper()
	if !s.operation(t).Cancel {
		return
	}
	stop := func(ctx context.Context, p providers.Provider) error {
		return p.(providers.Canceller).Cancel(ctx, s.Ref)
	}
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		vendor := s.Vendor(t, s.Stopped)
		if err := stop(t.Context(), s.Open(t, vendor.URL, providers.Options{})); err != nil {
			t.Errorf("Cancel: %v", err)
		}
		calls := vendor.InLine()
		if len(calls) != 1 {
			t.Fatalf("%d requests, want 1", len(calls))
		}
		diff(t, "call", s.Stop, calls[0].String())
	})
	for name, fault := range map[string]Fault{"stalled": StallHead, "cut": CutHead} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vendor := s.Vendor(t, Reply{Fault: fault})
			s.check(t, stop(t.Context(), s.Open(t, vendor.URL, short())), Row{Kind: mediagate.KindTransient}, vendor.URL)
			if n := len(vendor.InLine()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
	for name, reply := range map[string]Reply{
		"HTML 502": {Status: 502, Body: "<html>"}, "empty 503": {Status: 503}, "redirect": {Status: 307},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vendor := s.Vendor(t, reply)
			s.check(t, stop(t.Context(), s.Open(t, vendor.URL, hasty(reply))), Row{Kind: mediagate.KindTransient}, vendor.URL)
		})
	}
	t.Run("refused connection", func(t *testing.T) {
		t.Parallel()
		address := "http://" + closedPort(t)
		s.check(t, stop(t.Context(), s.Open(t, address, short())), Row{Kind: mediagate.KindTransient}, address)
	})
	s.rows(t, s.CancelRows, stop)
}

// batch covers questions about several jobs: one call, whose answers belong to
// the jobs that they name, in whatever order.
func (s Suite) batch(t *testing.T) {
	t.Helper()
	most := s.operation(t).Batch
	if most < 2 || s.Alone {
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
	running, succeeded := anyWord(s.Words, mediagate.JobRunning), anyWord(s.Words, mediagate.JobSucceeded)
	t.Run("in another order", func(t *testing.T) {
		t.Parallel()
		refs, ids := jobs(min(most, 5))
		call := s.Together(ids)
		words := slices.Repeat([]string{running}, len(ids))
		words[1] = succeeded
		slices.Reverse(ids)
		slices.Reverse(words)
		vendor := s.Vendor(t, s.Batch(ids, words))
		answers, err := ask(s.Open(t, vendor.URL, providers.Options{}), t.Context(), refs)
		if err != nil || len(answers) != len(refs) || len(vendor.InLine()) != 1 {
			t.Fatalf("%d answers of %d, %d requests, %v", len(answers), len(refs), len(vendor.InLine()), err)
		}
		diff(t, "call", call, vendor.InLine()[0].String())
		for i, a := range answers {
			want := mediagate.JobRunning
			if i == 1 {
				want = mediagate.JobSucceeded
			}
			if a.Err != nil || a.Report.State != want || a.Report.Ref.JobID != refs[i].JobID || !a.Report.Named || (a.Report.Outcome != nil) != (i == 1) {
				t.Errorf("job %d: %+v, %v", i, a.Report, a.Err)
			}
		}
	})
	t.Run("one left out, another's among them", func(t *testing.T) {
		t.Parallel()
		refs, ids := jobs(2)
		vendor := s.Vendor(t, s.Batch([]string{"9" + ids[0], ids[1]}, []string{succeeded, running}))
		answers, err := ask(s.Open(t, vendor.URL, providers.Options{}), t.Context(), refs)
		if err != nil || len(answers) != 2 {
			t.Fatalf("%d answers, %v", len(answers), err)
		}
		if kind := mediagate.KindOf(answers[0].Err); answers[0].Err == nil || kind != mediagate.KindNotFound && kind != mediagate.KindTransient {
			t.Errorf("the job that was left out: %+v, %v", answers[0].Report, answers[0].Err)
		}
		if answers[1].Err != nil || answers[1].Report.State != mediagate.JobRunning {
			t.Errorf("the other: %+v, %v", answers[1].Report, answers[1].Err)
		}
	})
	refs, ids := jobs(2)
	whole := func(ctx context.Context, p providers.Provider) error {
		_, err := ask(p, ctx, refs)
		return err
	}
	s.rows(t, s.BatchRows, whole)
	for name, reply := range s.strangeReplies(s.Batch(ids, []string{running, running})) {
		if _, ok := s.BatchRows[name]; ok {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vendor := s.Vendor(t, reply)
			s.check(t, whole(t.Context(), s.Open(t, vendor.URL, hasty(reply))), Row{Kind: mediagate.KindTransient}, vendor.URL)
			if n := len(vendor.InLine()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

// open covers files that only the adapter can open.
func (s Suite) open(t *testing.T) {
	t.Helper()
	if s.Media.Ref == "" {
		return
	}
	read := func(ctx context.Context, p providers.Provider) (string, int64, error) {
		file, length, err := p.(providers.Opener).Open(ctx, s.Ref, s.Media)
		if err != nil {
			return "", 0, err
		}
		b, err := io.ReadAll(file)
		if closed := file.Close(); err == nil {
			err = closed
		}
		return string(b), length, err
	}
	opened := func(ctx context.Context, p providers.Provider) error {
		_, _, err := read(ctx, p)
		return err
	}
	t.Run("whole", func(t *testing.T) {
		t.Parallel()
		vendor := s.Vendor(t, s.File)
		file, length, err := read(t.Context(), s.Open(t, vendor.URL, providers.Options{}))
		if err != nil || file == "" || length >= 0 && length != int64(len(file)) {
			t.Errorf("%d bytes of %d, %v", len(file), length, err)
		}
	})
	t.Run("redirected to another host", func(t *testing.T) {
		t.Parallel()
		const elsewhere, film = "https://cdn.example.com/film.mp4", "the film"
		vendor := s.Vendor(t, Reply{Status: http.StatusFound, Header: map[string]string{"Location": elsewhere}})
		var links []string
		opt := providers.Options{Follow: func(_ context.Context, link string, _ int) (io.ReadCloser, int64, error) {
			links = append(links, link)
			return io.NopCloser(strings.NewReader(film)), int64(len(film)), nil
		}}
		file, _, err := read(t.Context(), s.Open(t, vendor.URL, opt))
		if vendor.InLine()[0].Method != http.MethodGet { // an answer about the job, which holds the file
			return
		}
		if err != nil || file != film {
			t.Errorf("read %q, %v", file, err)
		}
		diff(t, "links", []string{elsewhere}, links)
	})
	for name, fault := range map[string]Fault{
		"stalled head": StallHead, "stalled body": StallBody, "cut before the head": CutHead, "cut in the body": CutBody,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reply := s.File
			reply.Fault = fault
			vendor := s.Vendor(t, reply)
			s.check(t, opened(t.Context(), s.Open(t, vendor.URL, hasty(reply))), Row{Kind: mediagate.KindTransient}, vendor.URL)
		})
	}
	for name, row := range map[string]Row{
		"404": {Reply: Reply{Status: 404, Body: "<html>"}, Kind: mediagate.KindGone},
		"410": {Reply: Reply{Status: 410, Body: "{}"}, Kind: mediagate.KindGone},
		"503": {Reply: Reply{Status: 503, Body: "{}"}, Kind: mediagate.KindTransient},
	} {
		if _, ok := s.OpenRows[name]; !ok {
			s.rows(t, map[string]Row{name: row}, opened)
		}
	}
	s.rows(t, s.OpenRows, opened)
}
