package providertest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/all"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// Suite is what an adapter tells of its vendor.
type Suite struct {
	Channel mediagate.Channel // without BaseURL
	Private bool              // the vendor has no public address: a channel must say where it is
	Unnamed bool              // no answer about a job carries its id
	Prefix  string            // of the vendor's paths, as base_url carries it
	Job     mediagate.Job     // one that the vendor accepts
	Files   map[string]string // what the client's links in Job lead to
	Secrets []string          // that the vendor hands out in Before, such as tokens

	// Others are accepted jobs of the provider's other operations, one each. The
	// inexpressible ones are refused, and no call is made for them.
	Others, Inexpressible []mediagate.Job

	// Before are the calls that Submit makes ahead of the one that submits, in
	// their order, with the vendor's good answers. Beside are those that a poll
	// makes after its own, once the job has succeeded.
	Before, Beside []Exchange

	Accepted   Reply // the vendor's acceptance of Job
	Submission mediagate.Submission
	Refused    func(text string) Reply // a refusal of Job as invalid, with this text
	SubmitRows map[string]Row          // every row of the vendor's error table, by name

	// Of asynchronous vendors.
	Ref      mediagate.JobRef        // of Job
	Word     func(word string) Reply // the answer about Ref's job, in this state
	Words    map[string]mediagate.JobState
	Failed   func(text string) Reply // the answer about a failed job, with this text
	PollRows map[string]Row          // by the name of a strange reply: what it means to this vendor
	// Lies are answers to Poll and Find against the vendor's own protocol, such as
	// another job's.
	Lies map[string]Reply
	// Bare are answers about Ref's job that it succeeded, and that name no media.
	Bare map[string]Reply
	// Partial are answers about Ref's job that it succeeded, which leave out the media
	// of some pieces, with the media that they name.
	Partial map[string]Partial

	// Of operations that can be cancelled.
	Stop       string // the call that stops Ref's job, as Request.String writes it
	Stopped    Reply  // the vendor's answer when it has stopped the job
	CancelRows map[string]Row

	// Of operations that are polled in batches: the call about jobs of these
	// ids, as Request.String writes it, and its answer, with each in a state.
	// Alone: the channel's dialect has no such call.
	Together  func(ids []string) string
	Batch     func(ids, words []string) Reply
	BatchRows map[string]Row // of the whole call; by name as PollRows
	Alone     bool

	// Of adapters that open files by reference.
	Media    mediagate.Media // with a Ref
	File     Reply           // the file
	OpenRows map[string]Row

	// Adapter is that of the channel's provider when it is left out.
	Adapter providers.Adapter
}

// Exchange is a call and its answer.
type Exchange struct {
	Route string // as "GET /v1/files/{id}", with Prefix
	Reply Reply
}

// Partial is an answer that names some of a job's media, and those.
type Partial struct {
	Reply Reply
	Media []mediagate.Media
	Clips []string // the ids of the songs that are listed
}

// Row is one answer and what an adapter makes of it.
type Row struct {
	Reply      Reply
	Kind       mediagate.Kind
	Code       mediagate.FailureCode // of the error; empty: not looked at
	RetryAfter time.Duration         // of the error
	Calls      int                   // requests made; 0: one. The reply is given to each.
}

// Run runs the suite.
func Run(t *testing.T, s Suite) {
	t.Helper()
	t.Run("settings", s.settings)
	t.Run("description", func(t *testing.T) {
		t.Parallel()
		s.description(t)
	})
	t.Run("express", func(t *testing.T) {
		t.Parallel()
		s.express(t)
	})
	t.Run("submit", func(t *testing.T) {
		t.Parallel()
		s.submit(t)
		s.rows(t, s.SubmitRows, s.submitKind)
	})
	t.Run("callback", func(t *testing.T) {
		t.Parallel()
		s.callback(t)
	})
	t.Run("reach", func(t *testing.T) {
		t.Parallel()
		s.reach(t)
	})
	t.Run("speak", func(t *testing.T) {
		t.Parallel()
		s.speak(t)
	})
	t.Run("before", func(t *testing.T) {
		t.Parallel()
		s.before(t)
	})
	if s.Word == nil {
		return
	}
	t.Run("poll", func(t *testing.T) {
		t.Parallel()
		s.poll(t, s.Ref, providers.Provider.Poll)
		s.rows(t, s.PollRows, s.pollKind)
		s.beside(t)
	})
	t.Run("find", func(t *testing.T) {
		t.Parallel()
		s.find(t)
	})
	t.Run("batch", func(t *testing.T) {
		t.Parallel()
		s.batch(t)
	})
	t.Run("cancel", func(t *testing.T) {
		t.Parallel()
		s.cancel(t)
	})
	t.Run("open", func(t *testing.T) {
		t.Parallel()
		s.open(t)
	})
}

// Address stands for the vendor's in a credential that holds one.
const Address = "https://vendor.invalid"

// Open makes the adapter against an address, which stands for {vendor} in the
// channel's options.
func (s Suite) Open(tb testing.TB, address string, opt providers.Options) providers.Provider {
	tb.Helper()
	ch := s.Channel
	ch.BaseURL = address + s.Prefix
	ch.Options, ch.Credentials = maps.Clone(ch.Options), maps.Clone(ch.Credentials)
	for name, value := range ch.Options {
		ch.Options[name] = strings.ReplaceAll(value, "{vendor}", address)
	}
	for name, value := range ch.Credentials {
		ch.Credentials[name] = mediagate.NewSecret(strings.ReplaceAll(value.Reveal(), Address, address))
	}
	p, err := s.adapter(tb).Open(ch, opt)
	if err != nil {
		tb.Fatalf("New: %v", err)
	}
	if c, ok := p.(providers.Closer); ok {
		tb.Cleanup(c.Close)
	}
	return p
}

func (s Suite) adapter(tb testing.TB) providers.Adapter {
	tb.Helper()
	if s.Adapter.Open != nil {
		return s.Adapter
	}
	a, ok := all.Adapter(s.Channel.Provider)
	if !ok {
		tb.Fatalf("no adapter is named %q", s.Channel.Provider)
	}
	return a
}

// described is what the adapter says of itself.
func (s Suite) described() providers.Description {
	if s.Adapter.Open != nil {
		return s.Adapter.Description
	}
	a, _ := all.Adapter(s.Channel.Provider)
	return a.Description
}

// operation is what the adapter says of the suite's job.
func (s Suite) operation(tb testing.TB) providers.Operation {
	tb.Helper()
	return s.adapter(tb).Description.Operations[s.Job.Operation]
}

// Vendor is one that knows the calls around the one that is tested, which
// gets the replies.
func (s Suite) Vendor(tb testing.TB, replies ...Reply) *Vendor {
	tb.Helper()
	v := NewVendor(tb, replies...)
	for _, x := range slices.Concat(s.Before, s.Beside) {
		v.On(x.Route, x.Reply)
	}
	return v
}

// job is the suite's job as an activity hands it over.
func (s Suite) job() mediagate.Job {
	job := s.Job
	job.Inputs, job.Sink = Inputs(s.Files), NewSink()
	return job
}

// short lets a stalled answer end soon, and leaves time enough for what comes
// before it on a machine that is busy.
func short() providers.Options {
	return providers.Options{Timeouts: vendorhttp.Timeouts{
		SubmitHeader: time.Second, Submit: 2 * time.Second,
		ReadHeader: time.Second, Read: 2 * time.Second,
	}}
}

// hasty is short for a reply that would not end by itself, in time or in length.
// Any other is waited for, however slow the machine.
func hasty(r Reply) providers.Options {
	switch r.Fault {
	case StallHead, StallBody:
		return short()
	case Huge:
		return providers.Options{MaxBody: 4 << 20}
	case NoFault, CutHead, CutBody:
	}
	return providers.Options{}
}

// check judges an error: its kind, and that it gives nothing away.
func (s Suite) check(t *testing.T, err error, want Row, host string) {
	t.Helper()
	var e *mediagate.Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %T (%v), want *mediagate.Error of kind %v", err, err, want.Kind)
	}
	if e.Kind != want.Kind {
		t.Errorf("kind = %v, want %v: %v", e.Kind, want.Kind, err)
	}
	if want.Code != "" && mediagate.FailureCode(e.Code) != want.Code {
		t.Errorf("code = %q, want %q", e.Code, want.Code)
	}
	if e.RetryAfter != want.RetryAfter {
		t.Errorf("retry after %v, want %v", e.RetryAfter, want.RetryAfter)
	}
	if e.Message == "" {
		t.Error("the error has no message")
	}
	s.discreet(t, err.Error(), host)
	s.discreet(t, e.Message, host)
}

// discreet fails when a text holds a credential or an address.
func (s Suite) discreet(t *testing.T, text, host string) {
	t.Helper()
	for name, secret := range s.Channel.Credentials {
		if strings.Contains(text, secret.Reveal()) {
			t.Errorf("the text holds credential %s: %s", name, text)
		}
	}
	for _, secret := range s.Secrets {
		if strings.Contains(text, secret) {
			t.Errorf("the text holds a secret of the vendor's: %s", text)
		}
	}
	for _, word := range []string{host, "127.0.0.1", "http://", "https://", "eyJ"} {
		if word != "" && strings.Contains(text, word) {
			t.Errorf("the text holds %q: %s", word, text)
		}
	}
}

// call is one of the two operations, reduced to its error.
type call func(ctx context.Context, p providers.Provider) error

func (s Suite) submitKind(ctx context.Context, p providers.Provider) error {
	_, err := s.send(ctx, p, s.job())
	return err
}

func (s Suite) pollKind(ctx context.Context, p providers.Provider) error {
	_, err := p.Poll(ctx, s.Ref)
	return err
}

func (s Suite) rows(t *testing.T, rows map[string]Row, do call) {
	t.Helper()
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := cmp.Or(row.Calls, 1)
			vendor := s.Vendor(t, slices.Repeat([]Reply{row.Reply}, calls)...)
			err := do(t.Context(), s.Open(t, vendor.URL, hasty(row.Reply)))
			s.check(t, err, row, vendor.URL)
			if got := len(vendor.InLine()); got != calls {
				t.Errorf("%d requests, want %d", got, calls)
			}
		})
	}
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
