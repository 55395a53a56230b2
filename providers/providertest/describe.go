package providertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// description compares the adapter's Description with the methods that it implements, and with the
// facts that the suite then needs.
func (s Suite) description(t *testing.T) {
	about := s.adapter(t).Description
	_, p := s.connect(t)
	_, finds := p.(providers.Finder)
	_, stops := p.(providers.Canceller)
	_, batches := p.(providers.Batcher)
	_, speaks := p.(providers.Speaker)
	var find, stop, batch, stream bool
	bases := map[string]string{} // the operations that take the base contract, by media class
	tried := map[string]bool{}
	for _, job := range s.jobs() {
		tried[job.Operation] = true
	}
	for name, op := range about.Operations {
		find, stop, batch, stream = find || op.Find, stop || op.Cancel, batch || op.Batch > 1, stream || op.Streams
		if op.Streams && (!op.Sync || op.Inputs || op.Base) {
			t.Errorf("%s: streams, and has what only tasks have", name)
		}
		if !slices.Contains([]string{"video", "image", "audio"}, op.Media) || op.Submit <= 0 ||
			len(op.Fields) == 0 && !op.Source {
			t.Errorf("%s: media %q, submit %s, fields %v", name, op.Media, op.Submit, op.Fields)
		}
		if op.Base {
			if bases[op.Media] != "" {
				t.Errorf("%s and %s both take the base contract for %ss", bases[op.Media], name, op.Media)
			}
			bases[op.Media] = name
		}
		if !tried[name] {
			t.Errorf("%s: no job of the suite tries it", name)
		}
	}
	batch = batch && !s.NoBatch
	for what, is := range map[string][2]bool{
		"Find": {find, finds}, "Cancel": {stop, stops}, "PollAll": {batch, batches}, "Speak": {stream, speaks},
	} {
		if is[0] != is[1] {
			t.Errorf("%s: described %v, implemented %v", what, is[0], is[1])
		}
	}
	op := s.operation(t)
	_, opens := p.(providers.Opener)
	for what, is := range map[string][2]bool{
		"Submission.Outcome": {op.Sync, s.Submission.Outcome != nil},
		"Word":               {!op.Sync, s.Word != nil},
		"Stopped":            {op.Cancel, s.Stopped.Body != "" || s.Stopped.Status != 0},
		"Batch":              {op.Batch > 1 && !s.NoBatch, s.Batch != nil && s.BatchCall != nil},
		"File":               {opens && !op.Sync, s.Media.Ref != ""},
	} {
		if is[0] && !is[1] {
			t.Errorf("the suite needs %s for the operation %s", what, s.Job.Operation)
		}
	}
	s.inputs(t)
	for name := range s.Channel.Credentials {
		if !slices.Contains(about.Credentials, name) {
			t.Errorf("credential %s is not described", name)
		}
	}
}

// inputs compares Operation.Inputs with what a submission of the operation does. Inputs decides how
// long a submission has until its first byte.
func (s Suite) inputs(t *testing.T) {
	opens := map[string]bool{}
	for _, job := range s.jobs() {
		seen := &recorder{Inputs: s.Files}
		job.Inputs, job.Sink = seen, NewSink()
		_, p := s.connect(t, s.Accepted)
		_, _ = s.send(t.Context(), p, job)
		opens[job.Operation] = opens[job.Operation] || seen.opened.Load()
	}
	for name, op := range s.adapter(t).Description.Operations {
		if op.Inputs != opens[name] {
			t.Errorf("%s: Inputs: described %v, opened %v", name, op.Inputs, opens[name])
		}
	}
}

// jobs returns one job of each operation.
func (s Suite) jobs() []mediagate.Job { return append([]mediagate.Job{s.Job}, s.Others...) }

// supports tests Supports: it must return every error that Submit would return without a call.
func (s Suite) supports(t *testing.T) {
	about := s.adapter(t).Description
	for _, job := range s.jobs() {
		t.Run(job.Operation, func(t *testing.T) {
			t.Parallel()
			// A task that is not accepted yet has no other fields.
			bare := mediagate.Job{Upstream: job.Upstream, Operation: job.Operation, Params: job.Params, Source: job.Source}
			if err := s.adapter(t).Supports(bare, s.Channel.Options); err != nil {
				t.Fatalf("Supports: %v", err)
			}
			for name, op := range about.Operations {
				for _, field := range append(slices.Clone(op.Fields), "no_such_field") {
					if known := slices.Contains(about.Operations[job.Operation].Fields, field); !known || name == job.Operation {
						s.field(t, job, field, known)
					}
				}
			}
		})
	}
	for _, job := range s.Inexpressible {
		t.Run(job.Operation+" "+string(job.Params), func(t *testing.T) {
			t.Parallel()
			s.checkRefusal(t, job)
		})
	}
	t.Run("unreadable", func(t *testing.T) {
		t.Parallel()
		job := s.Job
		job.Params = []byte(`{"prompt":`)
		s.checkRefusal(t, job)
	})
}

// field tests a request with an additional field. If the operation lacks the field, the error must
// name it. If the operation takes the field, its presence must not be refused.
func (s Suite) field(t *testing.T, job mediagate.Job, field string, known bool) {
	var params map[string]json.RawMessage
	if err := json.Unmarshal(job.Params, &params); err != nil {
		t.Fatal(err)
	}
	params[field] = json.RawMessage("null")
	job.Params, _ = json.Marshal(params)
	if known {
		err := s.adapter(t).Supports(job, s.Channel.Options)
		if err != nil && strings.Contains(
			err.Error(), vendorhttp.DecodeParams([]byte(`{"`+field+`":null}`), &struct{}{}).Error(),
		) {
			t.Errorf("%s is described, and refused: %v", field, err)
		}
		return
	}
	s.checkRefusal(t, job)
	if err := s.adapter(t).Supports(job, s.Channel.Options); err != nil && !strings.Contains(err.Error(), "("+field+")") {
		t.Errorf("%s is unknown, and the error does not name it: %v", field, err)
	}
}

// checkRefusal expects that Submit refuses a job without a call, with the same error as Supports.
func (s Suite) checkRefusal(t *testing.T, job mediagate.Job) {
	vendor, p := s.connect(t, s.Accepted)
	said := s.adapter(t).Supports(job, s.Channel.Options)
	job.Inputs, job.Sink = Inputs(s.Files), NewSink()
	_, err := s.send(t.Context(), p, job)
	s.check(t, err, Row{Kind: mediagate.KindInvalid}, vendor.URL)
	if said == nil || said.Error() != err.Error() {
		t.Errorf("Supports: %v, Submit: %v", said, err)
	}
	if n := len(vendor.Requests()); n != 0 {
		t.Errorf("%d requests, want none", n)
	}
}

// settings tests faults in a channel's settings. Each error must name the channel and the field,
// and must not contain the value.
func (s Suite) settings(t *testing.T) {
	change := func(edit func(*mediagate.Channel)) mediagate.Channel {
		ch := s.Channel
		ch.Credentials = maps.Clone(ch.Credentials)
		edit(&ch)
		return ch
	}
	type setting struct {
		channel mediagate.Channel
		field   string
	}
	cases := map[string]setting{
		"unknown credential": {change(func(c *mediagate.Channel) {
			c.Credentials["pin"] = mediagate.NewSecret("1234")
		}), "credentials.pin"},
		"unknown option": {change(func(c *mediagate.Channel) {
			c.Options = map[string]string{"turbo": "yes"}
		}), "options.turbo"},
		"relative base URL": {change(func(c *mediagate.Channel) { c.BaseURL = "api.example.com" }), "base_url"},
	}
	for name, value := range s.Channel.Credentials {
		cases["no "+name] = setting{change(func(c *mediagate.Channel) { delete(c.Credentials, name) }), "credentials."}
		cases["line break in "+name] = setting{change(func(c *mediagate.Channel) {
			c.Credentials[name] = mediagate.NewSecret(value.Reveal() + "\r\nX-Evil: 1")
		}), "credentials." + name}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := s.adapter(t).Open(tc.channel, providers.Options{})
			if !mediagate.Is(err, mediagate.KindInvalid) || !strings.Contains(err.Error(), tc.channel.Name) ||
				!strings.Contains(err.Error(), tc.field) {
				t.Fatalf("New: %v, want an error of kind invalid that names %s and %s", err, tc.channel.Name, tc.field)
			}
			s.checkNoSecrets(t, err.Error(), "")
		})
	}
	t.Run("public address", func(t *testing.T) {
		t.Parallel()
		p, err := s.adapter(t).Open(s.Channel, providers.Options{})
		if s.Private {
			if !mediagate.Is(err, mediagate.KindInvalid) || !strings.Contains(err.Error(), "base_url") {
				t.Errorf("New without an address: %v", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := p.(providers.Closer); ok {
			defer c.Close()
		}
		// A panic may print anything that contains the adapter.
		for _, verb := range []string{"%v", "%+v", "%#v"} {
			s.checkNoSecrets(t, fmt.Sprintf(verb, p)+fmt.Sprintf(verb, struct{ vendor any }{p})+fmt.Sprintf(verb, s.Channel), "")
		}
	})
	t.Run("account", func(t *testing.T) {
		t.Parallel()
		account := s.adapter(t).Account
		same := change(func(c *mediagate.Channel) { c.Name, c.BaseURL, c.Priority = "other", "https://api.example.com", 9 })
		if account(same) != account(s.Channel) {
			t.Error("a renamed channel of the same account has another name of it")
		}
		other := change(func(c *mediagate.Channel) {
			for name, value := range c.Credentials {
				c.Credentials[name] = mediagate.NewSecret(value.Reveal() + "x")
			}
		})
		if account(other) == account(s.Channel) {
			t.Error("two accounts have one name")
		}
		s.checkNoSecrets(t, s.Vendors.Fingerprint(s.Channel), "")
	})
}
