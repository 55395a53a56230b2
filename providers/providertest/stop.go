package providertest

import (
	"context"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
)

// cancel tests how a job is stopped: by one call, which may be repeated after an unclear answer.
func (s Suite) cancel(t *testing.T) {
	if !s.operation(t).Cancel {
		return
	}
	stop := func(ctx context.Context, p providers.Provider) error {
		return p.(providers.Canceller).Cancel(ctx, s.Ref)
	}
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		vendor, p := s.connect(t, s.Stopped)
		if err := stop(t.Context(), p); err != nil {
			t.Errorf("Cancel: %v", err)
		}
		calls := vendor.Unrouted()
		if len(calls) != 1 {
			t.Fatalf("%d requests, want 1", len(calls))
		}
		diff(t, "call", s.Stop, calls[0].String())
	})
	rows := map[string]Row{}
	for name, reply := range map[string]Reply{
		"stalled": {Fault: StallHead}, "cut": {Fault: CutHead},
		"HTML 502": {Status: 502, Body: "<html>"}, "empty 503": {Status: 503}, "redirect": {Status: 307},
	} {
		rows[name] = Row{Reply: reply, Kind: mediagate.KindTransient}
	}
	maps.Copy(rows, s.CancelRows)
	s.rows(t, rows, stop)
}

// open tests files that only the adapter can open.
func (s Suite) open(t *testing.T) {
	if s.Media.Ref == "" {
		return
	}
	read := func(ctx context.Context, p providers.Provider) (string, int64, error) {
		file, length, err := p.(providers.Opener).Open(ctx, s.Ref, s.Media)
		if err != nil {
			return "", 0, err
		}
		defer file.Close()
		b, err := io.ReadAll(file)
		return string(b), length, err
	}
	t.Run("whole", func(t *testing.T) {
		t.Parallel()
		_, p := s.connect(t, s.File)
		file, length, err := read(t.Context(), p)
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
		if vendor.Unrouted()[0].Method != http.MethodGet { // the vendor's answer about the job holds the file
			return
		}
		if err != nil || file != film {
			t.Errorf("read %q, %v", file, err)
		}
		diff(t, "links", []string{elsewhere}, links)
	})
	rows := map[string]Row{
		"404": {Reply: Reply{Status: 404, Body: "<html>"}, Kind: mediagate.KindGone},
		"410": {Reply: Reply{Status: 410, Body: "{}"}, Kind: mediagate.KindGone},
		"503": {Reply: Reply{Status: 503, Body: "{}"}, Kind: mediagate.KindTransient},
	}
	for name, fault := range map[string]Fault{
		"stalled head": StallHead, "stalled body": StallBody, "cut before the head": CutHead, "cut in the body": CutBody,
	} {
		reply := s.File
		reply.Fault = fault
		rows[name] = Row{Reply: reply, Kind: mediagate.KindTransient}
	}
	maps.Copy(rows, s.OpenRows)
	s.rows(t, rows, func(ctx context.Context, p providers.Provider) error {
		_, _, err := read(ctx, p)
		return err
	})
}
