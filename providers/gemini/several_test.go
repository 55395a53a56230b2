package gemini_test

import (
	"context"
	"io"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/providertest"
)

// TestSeveralImages asks for three images, one a call. The vendor replies to the calls in the order
// of their arrival.
func TestSeveralImages(t *testing.T) {
	t.Parallel()
	paid := func(tokens string, parts ...string) providertest.Reply {
		r := content(parts...)
		r.Body = r.Body[:len(r.Body)-1] + `,"usageMetadata":{"totalTokenCount":` + tokens + `}}`
		return r
	}
	ok, words := paid("7", inline(made)), paid("2", `{"text":"no"}`)
	blocked := providertest.Reply{Body: `{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"totalTokenCount":1}}`}
	status := func(code int) providertest.Reply {
		return providertest.Reply{Status: code, Body: `{"error":{"code":` + strconv.Itoa(code) + `,"message":"no"}}`}
	}
	for name, c := range map[string]struct {
		replies []providertest.Reply
		images  int
		code    mediagate.FailureCode // if the job fails
		missing string                // the reasons for operators, if images are missing
		kind    mediagate.Kind        // if the job is refused or lost
		charge  string
	}{
		"all come":                     {replies: []providertest.Reply{ok, ok, ok}, images: 3, charge: "21"},
		"refused ones are left out":    {replies: []providertest.Reply{status(429), ok, blocked}, images: 1, charge: "8", missing: "calls without an image: throttled, SAFETY"},
		"lost ones are left out":       {replies: []providertest.Reply{ok, status(500), ok}, images: 2, charge: "14", missing: "calls without an image: ambiguous"},
		"moderation is the reason":     {replies: []providertest.Reply{words, blocked, status(429)}, code: mediagate.CodeContentPolicy, charge: "3"},
		"one lost is all lost":         {replies: []providertest.Reply{words, status(500), status(429)}, kind: mediagate.KindAmbiguous},
		"the client's error first":     {replies: []providertest.Reply{status(429), status(400), status(429)}, kind: mediagate.KindInvalid},
		"the account before the rates": {replies: []providertest.Reply{status(429), status(403), status(429)}, kind: mediagate.KindCredentials},
		"all refused for now":          {replies: []providertest.Reply{status(429), status(429), status(429)}, kind: mediagate.KindThrottled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := suite()
			vendor, sink := providertest.NewVendor(t, c.replies...), providertest.NewSink()
			job := s.Job
			job.Params, job.Inputs, job.Sink = []byte(`{"prompt":"a","n":3}`), providertest.Inputs(s.Files), sink
			got, err := s.Open(t, vendor.URL, providers.Options{}).Submit(t.Context(), job)
			if n := len(vendor.Requests()); n != 3 {
				t.Errorf("%d calls", n)
			}
			if c.charge == "" {
				if !mediagate.Is(err, c.kind) {
					t.Errorf("error %v, want %s", err, c.kind)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(mediagate.ChargedBy(c.charge, "tokens"), got.Outcome.VendorCharge); diff != "" {
				t.Errorf("charge (-want +got):\n%s", diff)
			}
			if c.images == 0 {
				if got.Outcome.Succeeded || got.Outcome.Failure.Code != c.code {
					t.Errorf("outcome %+v", got.Outcome)
				}
				return
			}
			stored := slices.Sorted(maps.Keys(sink.Files()))
			if len(stored) != c.images || !slices.Equal(indexes(got), stored) {
				t.Errorf("images %v, stored %v, want %d", indexes(got), stored, c.images)
			}
			if got.Outcome.VendorText != c.missing {
				t.Errorf("vendor text %q, want %q", got.Outcome.VendorText, c.missing)
			}
			if got.Ref.ExternalID != job.ExternalID {
				t.Errorf("reference %+v", got.Ref)
			}
			// The adapter records the images so far after each one but the last.
			for i, r := range sink.Recorded() {
				if len(indexes(r)) != i+1 {
					t.Errorf("record %d has images %v", i, indexes(r))
				}
			}
			if n := len(sink.Recorded()); c.images == 3 && n != 2 {
				t.Errorf("%d records", n)
			}
		})
	}
}

// TestPanicOfOneCall checks that a panic in one call, which runs on a goroutine of the adapter,
// ends neither the process nor the other calls.
func TestPanicOfOneCall(t *testing.T) {
	t.Parallel()
	s := suite()
	ok := content(inline(made))
	for name, sink := range map[string]mediagate.Sink{
		"while it stores":  &panics{Sink: providertest.NewSink(), index: 1},
		"while it records": &panics{Sink: providertest.NewSink(), index: -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vendor := providertest.NewVendor(t, ok, ok, ok)
			job := s.Job
			job.Params, job.Inputs, job.Sink = []byte(`{"prompt":"a","n":3}`), providertest.Inputs(s.Files), sink
			got, err := s.Open(t, vendor.URL, providers.Options{}).Submit(t.Context(), job)
			want := 3
			if name == "while it stores" {
				want = 2
			}
			if err != nil || len(indexes(got)) != want {
				t.Errorf("%+v, %v, want %d images", got.Outcome, err, want)
			}
		})
	}
}

// panics is a sink that panics when it stores the image with the index, or, if the index is
// negative, when it records.
type panics struct {
	*providertest.Sink
	index int
}

func (p *panics) Store(ctx context.Context, index int, file io.Reader) (mediagate.Media, error) {
	if index == p.index {
		panic("stored")
	}
	return p.Sink.Store(ctx, index, file)
}

func (p *panics) Record(context.Context, mediagate.Submission) {
	if p.index < 0 {
		panic("recorded")
	}
}

func indexes(s mediagate.Submission) (all []int) {
	for _, m := range s.Outcome.Media {
		all = append(all, m.Index)
	}
	return all
}
