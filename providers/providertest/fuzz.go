package providertest

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
)

// Fuzz makes a vendor answer a submit and a poll with arbitrary bytes. The adapter must not panic,
// must not report a false success, and must not reveal a secret. The seeds are the answers of the
// suite.
func Fuzz(f *testing.F, s Suite) {
	f.Helper()
	seeds := []Reply{s.Accepted, s.Refused("no")}
	for _, rows := range []map[string]Row{s.SubmitRows, s.PollRows} {
		for _, row := range rows {
			seeds = append(seeds, row.Reply)
		}
	}
	for word := range s.Words {
		seeds = append(seeds, s.Word(word))
	}
	if s.Failed != nil {
		seeds = append(seeds, s.Failed("no"))
	}
	seeds = slices.AppendSeq(seeds, maps.Values(s.ProtocolErrors))
	seeds = slices.AppendSeq(seeds, maps.Values(s.WithoutMedia))
	for _, reply := range seeds {
		if reply.Fault == NoFault && len(reply.Body) <= 64<<10 {
			f.Add(reply.Status, reply.Body)
		}
	}
	vendor := s.Vendor(f)
	adapter := s.Open(f, vendor.URL, providers.Options{MaxBody: 1 << 20})
	f.Fuzz(func(t *testing.T, status int, body string) {
		if status < 200 || status > 599 {
			status = 200
		}
		vendor.reset(slices.Repeat([]Reply{{Status: status, Body: body}}, 16)...)
		got, err := s.send(t.Context(), adapter, s.job())
		switch {
		case err != nil:
			s.refusal(t, err, vendor.URL)
		case status >= 300 || got.Outcome == nil && got.Ref.JobID == "":
			t.Errorf("status %d is an acceptance: %+v", status, got)
		default:
			s.outcome(t, got.Outcome, vendor.URL)
		}
		if s.Word == nil {
			return
		}
		report, err := adapter.Poll(t.Context(), s.Ref)
		if err != nil {
			s.refusal(t, err, vendor.URL)
			return
		}
		if report.Percent < -1 || report.Percent > 100 {
			t.Errorf("%d percent", report.Percent)
		}
		if status >= 300 && report.Outcome != nil && report.Outcome.Succeeded {
			t.Errorf("status %d is a success: %+v", status, report.Outcome)
		}
		s.outcome(t, report.Outcome, vendor.URL)
	})
}

// refusal expects an error of type *mediagate.Error, of any kind.
func (s Suite) refusal(t *testing.T, err error, host string) {
	t.Helper()
	var ours *mediagate.Error
	if !errors.As(err, &ours) || ours.Message == "" || len(ours.Message) > 4<<10 {
		t.Fatalf("error is %T without a message, or with a long one: %v", err, err)
	}
	s.checkNoSecrets(t, ours.Message, host)
}

// outcome expects that a success has a result, and that a failure has a reason.
func (s Suite) outcome(t *testing.T, o *mediagate.Outcome, host string) {
	t.Helper()
	if o == nil {
		return
	}
	for _, m := range o.Media {
		if m.URL == "" && m.Ref == "" && m.Stored == nil {
			t.Errorf("a file that is nowhere: %+v", m)
		}
	}
	switch f := o.Failure; {
	case o.Succeeded && len(o.Media) == 0 && o.Made == nil:
		t.Errorf("a success without anything: %+v", o)
	case o.Succeeded:
	case f == nil || f.Code == "" || f.Message == "" || len(f.Message) > 4<<10:
		t.Errorf("a failure without a reason, or with a long one: %+v", o)
	default:
		s.checkNoSecrets(t, f.Message, host)
	}
}
