package providertest

import (
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
)

// before covers the calls that come ahead of the one that submits: while one
// of them fails, nothing is submitted, and that is known for certain.
func (s Suite) before(t *testing.T) {
	t.Helper()
	for _, x := range s.Before {
		for name, reply := range s.strangeReplies(x.Reply) {
			t.Run(x.Route+" "+name, func(t *testing.T) {
				t.Parallel()
				vendor := s.Vendor(t, s.Accepted)
				vendor.On(x.Route, reply)
				s.check(t, s.submitKind(t.Context(), s.Open(t, vendor.URL, hasty(reply))), Row{Kind: mediagate.KindUnreached}, vendor.URL)
				if n := len(vendor.InLine()); n != 0 {
					t.Errorf("%d requests beside those before, want none", n)
				}
			})
		}
	}
	t.Run("all calls", func(t *testing.T) {
		t.Parallel()
		vendor := s.Vendor(t, s.Accepted)
		if _, err := s.send(t.Context(), s.Open(t, vendor.URL, providers.Options{}), s.job()); err != nil {
			t.Fatal(err)
		}
		for _, x := range s.Before {
			if len(vendor.RequestsOn(x.Route)) == 0 {
				t.Errorf("%s was not called", x.Route)
			}
		}
		requests := vendor.Requests()
		if last := requests[len(requests)-1]; last.route != "" {
			t.Errorf("%s came after the submission", last.route)
		}
	})
}

// beside covers the calls that a poll needs when the job has succeeded: while
// one of them fails, the job has not ended.
func (s Suite) beside(t *testing.T) {
	t.Helper()
	good := s.Word(anyWord(s.Words, mediagate.JobSucceeded))
	for _, x := range s.Beside {
		for name, reply := range s.strangeReplies(x.Reply) {
			t.Run(x.Route+" "+name, func(t *testing.T) {
				t.Parallel()
				vendor := s.Vendor(t, good)
				vendor.On(x.Route, reply)
				s.check(t, s.pollKind(t.Context(), s.Open(t, vendor.URL, hasty(reply))), Row{Kind: mediagate.KindTransient}, vendor.URL)
			})
		}
	}
}
