package providertest_test

import (
	"mime"
	"mime/multipart"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestSuite runs all of the suite on an adapter that does all that one can.
func TestSuite(t *testing.T) {
	t.Parallel()
	providertest.Run(t, toySuite(inField))
}

func TestVendorAnswersByRoute(t *testing.T) {
	t.Parallel()
	vendor := toySuite(inField).Vendor(t, providertest.Reply{Body: `{"id":"j7"}`}, providertest.Reply{Body: `{"id":"j8"}`})
	vendor.On("POST /token", providertest.Reply{Status: 503}, providertest.Reply{Body: `{"token":"t2"}`})
	s := toySuite(inField)
	p := s.Open(t, vendor.URL, providers.Options{})
	for _, want := range []string{"", "j7", "j8"} {
		job := s.Job
		job.Inputs = providertest.Inputs(s.Files)
		if got, err := p.Submit(t.Context(), job); got.Ref.JobID != want || (err == nil) != (want != "") {
			t.Errorf("Submit = %q, %v, want %q", got.Ref.JobID, err, want)
		}
	}
	if n, m := len(vendor.RequestsOn("POST /token")), len(vendor.InLine()); n != 3 || m != 2 {
		t.Errorf("%d tokens and %d jobs were asked for, want 3 and 2", n, m)
	}
}

// Two providers that word a request differently can both take it. It is stored
// once, so the second attempt is told in the second one's words.
func TestTwoProvidersWordARequest(t *testing.T) {
	t.Parallel()
	plan := []providertest.Suite{toySuite(inField), toySuite(inPrompt)}
	stored := []byte(`{"prompt":"a boat","negative_prompt":"fog"}`)
	replies := []providertest.Reply{{Status: 429, Body: `{"code":"busy"}`}, {Body: `{"id":"j7"}`}}
	for _, s := range plan {
		if err := s.Adapter.Express(mediagate.Job{Upstream: "toy-1", Operation: "video", Params: stored}, nil); err != nil {
			t.Fatalf("a route falls out of the plan: %v", err)
		}
	}
	var told []map[string]string
	for i, s := range plan {
		vendor := s.Vendor(t, replies[i])
		job := s.Job
		job.Params = stored
		_, err := s.Open(t, vendor.URL, providers.Options{}).Submit(t.Context(), job)
		if first := i == 0; first != mediagate.Is(err, mediagate.KindThrottled) || !first && err != nil {
			t.Fatalf("attempt %d: %v", i+1, err)
		}
		told = append(told, fields(t, vendor.InLine()[0]))
	}
	want := []map[string]string{
		{"model": "toy-1", "prompt": "a boat", "avoid": "fog", "token": toyToken},
		{"model": "toy-1", "prompt": "a boat, without fog", "token": toyToken},
	}
	if d := cmp.Diff(want, told); d != "" {
		t.Error(d)
	}
}

// fields reads a form.
func fields(t *testing.T, r providertest.Request) map[string]string {
	t.Helper()
	_, options, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	form, err := multipart.NewReader(strings.NewReader(r.Body), options["boundary"]).ReadForm(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for name, values := range form.Value {
		all[name] = values[0]
	}
	return all
}
