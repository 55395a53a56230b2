package providertest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
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

// Suite holds the facts about one vendor that the tests need.
type Suite struct {
	Vendors all.Vendors       // the table that has the adapter; zero: the built-in adapters
	Channel mediagate.Channel // without BaseURL
	Private bool              // the vendor has no public address, so a channel must have a base URL
	NoJobID bool              // no answer about a job contains the job's id
	Prefix  string            // of the vendor's paths, as in base_url
	Job     mediagate.Job     // a job that the vendor accepts
	Files   map[string]string // the files behind the client's links in Job
	Secrets []string          // secrets that the vendor issues in BeforeSubmit, such as tokens

	// Others are accepted jobs of the adapter's other operations, one each. Inexpressible jobs must
	// be refused without a call.
	Others, Inexpressible []mediagate.Job

	// BeforeSubmit are the calls that Submit makes before the call that submits, in order, with the
	// vendor's good answers. AfterPoll are the calls that a poll makes after its own if the job has
	// succeeded.
	BeforeSubmit, AfterPoll []Exchange

	Accepted   Reply // the vendor's acceptance of Job
	Submission mediagate.Submission
	Refused    func(text string) Reply // a refusal of Job as invalid, with this text
	SubmitRows map[string]Row          // all rows of the vendor's error table, by name

	// The next fields are for asynchronous vendors.
	Ref      mediagate.JobRef        // the reference of Job
	Word     func(word string) Reply // the answer about Ref's job with this status word
	Words    map[string]mediagate.JobState
	Failed   func(text string) Reply // the answer about a failed job, with this text
	PollRows map[string]Row          // a row with the name of a meaningless reply replaces that row
	// ProtocolErrors are answers to Poll and Find that break the vendor's own protocol, such as an
	// answer about another job.
	ProtocolErrors map[string]Reply
	// WithoutMedia are answers that Ref's job has succeeded, but without media. WithoutMedia may be
	// empty if all media are named in AfterPoll.
	WithoutMedia map[string]Reply
	// Partial are answers that Ref's job has succeeded, which lack the media of some pieces.
	Partial map[string]Partial

	// The next fields are for operations that can be cancelled.
	Stop       string // the call that stops Ref's job, as Request.String formats it
	Stopped    Reply  // the vendor's answer after it has stopped the job
	CancelRows map[string]Row

	// The next fields are for operations that are polled in batches. BatchCall returns the call
	// about the jobs with these ids, as Request.String formats it. Batch returns the answer to it,
	// with a status word for each job. NoBatch is set if the channel's dialect has no such call.
	BatchCall func(ids []string) string
	Batch     func(ids, words []string) Reply
	BatchRows map[string]Row // of the whole call; named like PollRows
	NoBatch   bool

	// The next fields are for adapters that open files by reference.
	Media    mediagate.Media // a file with a Ref
	File     Reply           // the answer with the file
	OpenRows map[string]Row
}

// Exchange is a call and its answer.
type Exchange struct {
	Route string // such as "GET /v1/files/{id}", including Prefix
	Reply Reply
}

// Partial is an answer that lacks some of a job's media.
type Partial struct {
	Reply Reply
	Media []mediagate.Media
	Clips []string // the ids of the songs that are listed
}

// Row is an answer and the error that the adapter must make of it.
type Row struct {
	Reply      Reply
	Kind       mediagate.Kind
	Code       mediagate.FailureCode // of the error; empty: any
	RetryAfter time.Duration         // of the error
	Calls      int                   // requests made; 0: one. Each gets the same reply.
}

// Run runs the suite.
func Run(t *testing.T, s Suite) {
	parts := map[string]func(*testing.T){
		"settings": s.settings, "description": s.description, "supports": s.supports,
		"submit": s.submit, "before submit": s.beforeSubmit, "unreached": s.unreached,
		"callback": s.callback, "speak": s.speak,
	}
	if s.Word != nil {
		maps.Copy(parts, map[string]func(*testing.T){
			"poll": s.poll, "after poll": s.afterPoll, "find": s.find, "batch": s.batch, "cancel": s.cancel, "open": s.open,
		})
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			part(t)
		})
	}
}

// Address is replaced by the vendor's address in credentials.
const Address = "https://vendor.invalid"

// Open opens the adapter with the vendor's address. {vendor} in the channel's options is replaced
// by the address.
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
	a, ok := s.Vendors.Adapter(s.Channel.Provider)
	if !ok {
		tb.Fatalf("no adapter is named %q", s.Channel.Provider)
	}
	return a
}

// operation returns the adapter's description of the suite's job.
func (s Suite) operation(tb testing.TB) providers.Operation {
	tb.Helper()
	return s.adapter(tb).Description.Operations[s.Job.Operation]
}

// Vendor returns a vendor that answers the calls of BeforeSubmit and AfterPoll. The call that is
// tested gets the replies.
func (s Suite) Vendor(tb testing.TB, replies ...Reply) *Vendor {
	tb.Helper()
	v := NewVendor(tb, replies...)
	for _, x := range slices.Concat(s.BeforeSubmit, s.AfterPoll) {
		v.On(x.Route, x.Reply)
	}
	return v
}

// connect returns a vendor with the replies, and an adapter that calls it.
func (s Suite) connect(tb testing.TB, replies ...Reply) (*Vendor, providers.Provider) {
	tb.Helper()
	vendor := s.Vendor(tb, replies...)
	return vendor, s.Open(tb, vendor.URL, providers.Options{})
}

// job returns the suite's job with inputs and a sink, as an activity passes it to an adapter.
func (s Suite) job() mediagate.Job {
	job := s.Job
	job.Inputs, job.Sink = Inputs(s.Files), NewSink()
	return job
}

// shortLimits returns options with short limits for replies that never end, in time or in length.
// The limits leave enough time for the connection on a busy machine. All other replies get the
// default limits.
func shortLimits(r Reply) (opt providers.Options) {
	switch r.Fault {
	case StallHead, StallBody:
		opt.Timeouts = vendorhttp.Timeouts{
			SubmitHeader: time.Second, Submit: 2 * time.Second, ReadHeader: time.Second, Read: 2 * time.Second,
		}
	case Huge:
		opt.MaxBody = 4 << 20
	case NoFault, CutHead, CutBody:
	}
	return opt
}

// check checks an error: its kind, and that it reveals nothing.
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
	s.checkNoSecrets(t, err.Error(), host)
	s.checkNoSecrets(t, e.Message, host)
}

// checkNoSecrets fails if a text contains a credential or an address.
func (s Suite) checkNoSecrets(t *testing.T, text, host string) {
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

// call is a call of the adapter, reduced to its error.
type call func(ctx context.Context, p providers.Provider) error

// rows expects the error of each row after its reply.
func (s Suite) rows(t *testing.T, rows map[string]Row, do call) {
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := cmp.Or(row.Calls, 1)
			vendor := s.Vendor(t, slices.Repeat([]Reply{row.Reply}, calls)...)
			err := do(t.Context(), s.Open(t, vendor.URL, shortLimits(row.Reply)))
			s.check(t, err, row, vendor.URL)
			if got := len(vendor.Unrouted()); got != calls {
				t.Errorf("%d requests, want %d", got, calls)
			}
		})
	}
}

// breakCalls breaks each of the calls beside the tested one. The tested call has a good reply and
// must be made as often as made says.
func (s Suite) breakCalls(t *testing.T, calls []Exchange, reply Reply, made int, kind mediagate.Kind, do call) {
	for _, x := range calls {
		for name, row := range meaninglessReplies(x.Reply, kind) {
			t.Run(x.Route+" "+name, func(t *testing.T) {
				t.Parallel()
				vendor := s.Vendor(t, reply)
				vendor.On(x.Route, row.Reply)
				s.check(t, do(t.Context(), s.Open(t, vendor.URL, shortLimits(row.Reply))), row, vendor.URL)
				if n := len(vendor.Unrouted()); n != made {
					t.Errorf("%d requests beside those, want %d", n, made)
				}
			})
		}
	}
}

// meaninglessReplies returns answers that state nothing about the call, derived from a good answer.
func meaninglessReplies(good Reply, kind mediagate.Kind) map[string]Row {
	html := "<html><body>Bad Gateway</body></html>"
	rows := map[string]Row{}
	for name, reply := range map[string]Reply{
		"empty 200":           {},
		"HTML 200":            {Body: html, Header: map[string]string{"Content-Type": "text/html"}},
		"HTML 200 as JSON":    {Body: html},
		"HTML 502":            {Status: http.StatusBadGateway, Body: html},
		"empty 503":           {Status: http.StatusServiceUnavailable},
		"JSON 500":            {Status: http.StatusInternalServerError, Body: `{"error":"oops"}`},
		"acceptance with 500": {Status: http.StatusInternalServerError, Body: good.Body},
		"redirect": {
			Status: http.StatusTemporaryRedirect, Header: map[string]string{"Location": "/elsewhere"},
		},
		"204":                      {Status: http.StatusNoContent},
		"array":                    {Body: `[]`},
		"null":                     {Body: `null`},
		"empty object":             {Body: `{}`},
		"half a document":          {Body: good.Body[:len(good.Body)/2]},
		"two documents":            {Body: good.Body + good.Body},
		"all fields of odd types":  {Body: `{"code":[],"message":{},"data":7,"output":"x","request_id":null}`},
		"deeply nested":            {Body: strings.Repeat(`{"data":`, 50_000) + "1" + strings.Repeat("}", 50_000)},
		"success by its code only": {Body: `{"code":0,"message":"SUCCEED","data":{}}`},
	} {
		rows[name] = Row{Reply: reply, Kind: kind}
	}
	for name, fault := range map[string]Fault{
		"stalled head": StallHead, "stalled body": StallBody, "cut before the head": CutHead,
		"cut in the body": CutBody, "endless body": Huge,
	} {
		good.Fault = fault
		rows[name] = Row{Reply: good, Kind: kind}
	}
	return rows
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
