package providertest

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/mediagate/mediagate"
)

// Fuzz lets a vendor answer anything to a submit and to a poll. Whatever it says,
// the adapter does not panic, takes nothing for a success that is none, and gives
// no secret away. Its seeds are the answers of the suite.
func Fuzz(f *testing.F, s Suite) {
	f.Helper()
	for _, reply := range s.answers() {
		f.Add(reply.Status, reply.Body)
	}
	vendor := s.Vendor(f)
	opt := short()
	opt.MaxBody = 1 << 20
	adapter := s.Open(f, vendor.URL, opt)
	f.Fuzz(func(t *testing.T, status int, body string) {
		if status < 200 || status > 599 {
			status = 200
		}
		vendor.reset(slices.Repeat([]Reply{{Status: status, Body: body}}, 16)...)
		got, err := s.send(t.Context(), adapter, s.job())
		if err != nil {
			s.fuzzedError(t, err, vendor.URL)
		} else {
			if status >= 300 {
				t.Errorf("status %d is an acceptance: %+v", status, got)
			}
			if got.Outcome == nil && got.Ref.JobID == "" {
				t.Errorf("accepted without an id: %+v", got)
			}
			s.fuzzedOutcome(t, got.Outcome, vendor.URL)
		}
		if s.Word == nil {
			return
		}
		report, err := adapter.Poll(t.Context(), s.Ref)
		if err != nil {
			s.fuzzedError(t, err, vendor.URL)
			return
		}
		if report.Percent < -1 || report.Percent > 100 {
			t.Errorf("%d percent", report.Percent)
		}
		if status >= 300 && report.Outcome != nil && report.Outcome.Succeeded {
			t.Errorf("status %d is a success: %+v", status, report.Outcome)
		}
		s.fuzzedOutcome(t, report.Outcome, vendor.URL)
	})
}

// answers are all that the suite knows.
func (s Suite) answers() []Reply {
	list := []Reply{s.Accepted, s.Refused("no")}
	for _, rows := range []map[string]Row{s.SubmitRows, s.PollRows} {
		for _, name := range slices.Sorted(maps.Keys(rows)) {
			list = append(list, rows[name].Reply)
		}
	}
	if s.Word != nil {
		list = append(list, s.Failed("no"))
		for _, word := range slices.Sorted(maps.Keys(s.Words)) {
			list = append(list, s.Word(word))
		}
		for _, name := range slices.Sorted(maps.Keys(s.Lies)) {
			list = append(list, s.Lies[name])
		}
		for _, name := range slices.Sorted(maps.Keys(s.Bare)) {
			list = append(list, s.Bare[name])
		}
	}
	const most = 64 << 10 // of a seed
	return slices.DeleteFunc(list, func(r Reply) bool { return r.Fault != NoFault || r.Echo != nil || len(r.Body) > most })
}

func (s Suite) fuzzedError(t *testing.T, err error, host string) {
	t.Helper()
	var ours *mediagate.Error
	if !errors.As(err, &ours) || ours.Message == "" {
		t.Fatalf("error is %T without a message: %v", err, err)
	}
	s.secret(t, ours.Message, host)
}

// fuzzedOutcome judges an end: a success has something to show, and a failure
// says why.
func (s Suite) fuzzedOutcome(t *testing.T, o *mediagate.Outcome, host string) {
	t.Helper()
	switch {
	case o == nil:
		return
	case o.Succeeded && len(o.Media) == 0 && o.Made == nil:
		t.Errorf("a success without anything: %+v", o)
	case !o.Succeeded && (o.Failure == nil || o.Failure.Code == "" || o.Failure.Message == ""):
		t.Errorf("a failure without a reason: %+v", o)
	}
	for _, m := range o.Media {
		if m.URL == "" && m.Ref == "" && m.Stored == nil {
			t.Errorf("a file that is nowhere: %+v", m)
		}
	}
	if o.Failure != nil {
		s.secret(t, o.Failure.Message, host)
	}
}

// secret is discreet without the words that anybody may say.
func (s Suite) secret(t *testing.T, text, host string) {
	t.Helper()
	if len(text) > 4<<10 {
		t.Errorf("a text of %d bytes", len(text))
	}
	s.discreet(t, text, host)
}
