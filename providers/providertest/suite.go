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

// Suite is what an adapter tells of its vendor.
type Suite struct {
	Vendors all.Vendors       // the table that has the adapter; zero: the built-in ones
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
	// Bare are answers about Ref's job that it succeeded, and that name no media. There may
	// be none where all media are named in Beside.
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
	parts := map[string]func(*testing.T){
		"settings": s.settings, "description": s.description, "supports": s.supports,
		"submit": s.submit, "before": s.before, "reach": s.reach, "callback": s.callback, "speak": s.speak,
	}
	if s.Word != nil {
		maps.Copy(parts, map[string]func(*testing.T){
			"poll": s.poll, "beside": s.beside, "find": s.find, "batch": s.batch, "cancel": s.cancel, "open": s.open,
		})
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			part(t)
		})
	}
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
	a, ok := s.Vendors.Adapter(s.Channel.Provider)
	if !ok {
		tb.Fatalf("no adapter is named %q", s.Channel.Provider)
	}
	return a
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

// connect is a vendor with the replies in line, and the adapter that calls it.
func (s Suite) connect(tb testing.TB, replies ...Reply) (*Vendor, providers.Provider) {
	tb.Helper()
	vendor := s.Vendor(tb, replies...)
	return vendor, s.Open(tb, vendor.URL, providers.Options{})
}

// job is the suite's job as an activity hands it over.
func (s Suite) job() mediagate.Job {
	job := s.Job
	job.Inputs, job.Sink = Inputs(s.Files), NewSink()
	return job
}

// hasty does not wait for a reply that would not end by itself, in time or in length,
// and leaves time enough for what comes before it on a machine that is busy. Any other
// reply is waited for.
func hasty(r Reply) (opt providers.Options) {
	switch r.Fault {
	case StallHead, StallBody:
		opt.Timeouts = vendorhttp.Timeouts{SubmitHeader: time.Second, Submit: 2 * time.Second, ReadHeader: time.Second, Read: 2 * time.Second}
	case Huge:
		opt.MaxBody = 4 << 20
	case NoFault, CutHead, CutBody:
	}
	return opt
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

// call is an operation of the adapter, reduced to its error.
type call func(ctx context.Context, p providers.Provider) error

// rows expects of each reply the error that its row names.
func (s Suite) rows(t *testing.T, rows map[string]Row, do call) {
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

// around breaks each of the calls beside the one that is tested, which has a good
// reply, and is made so often.
func (s Suite) around(t *testing.T, calls []Exchange, reply Reply, made int, kind mediagate.Kind, do call) {
	for _, x := range calls {
		for name, row := range strange(x.Reply, kind) {
			t.Run(x.Route+" "+name, func(t *testing.T) {
				t.Parallel()
				vendor := s.Vendor(t, reply)
				vendor.On(x.Route, row.Reply)
				s.check(t, do(t.Context(), s.Open(t, vendor.URL, hasty(row.Reply))), row, vendor.URL)
				if n := len(vendor.InLine()); n != made {
					t.Errorf("%d requests beside those, want %d", n, made)
				}
			})
		}
	}
}

// strange are answers from which no vendor's verdict can be read, made of a good one.
func strange(good Reply, kind mediagate.Kind) map[string]Row {
	html := "<html><body>Bad Gateway</body></html>"
	rows := map[string]Row{}
	for name, reply := range map[string]Reply{
		"empty 200":                {},
		"HTML 200":                 {Body: html, Header: map[string]string{"Content-Type": "text/html"}},
		"HTML 200 as JSON":         {Body: html},
		"HTML 502":                 {Status: http.StatusBadGateway, Body: html},
		"empty 503":                {Status: http.StatusServiceUnavailable},
		"JSON 500":                 {Status: http.StatusInternalServerError, Body: `{"error":"oops"}`},
		"acceptance with 500":      {Status: http.StatusInternalServerError, Body: good.Body},
		"redirect":                 {Status: http.StatusTemporaryRedirect, Header: map[string]string{"Location": "/elsewhere"}},
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
		"stalled head": StallHead, "stalled body": StallBody, "cut before the head": CutHead, "cut in the body": CutBody, "endless body": Huge,
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
