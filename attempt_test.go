package mediagate_test

import (
	"testing"

	"github.com/mediagate/mediagate"
)

// TestOffer checks that a job has succeeded only if it made something that the client pays for.
func TestOffer(t *testing.T) {
	t.Parallel()
	song, cover := mediagate.Media{URL: "https://cdn.example.com/1.mp3"}, mediagate.Media{Role: mediagate.RoleCover}
	for name, c := range map[string]struct {
		out                   mediagate.Outcome
		whole                 bool
		succeeded, incomplete bool
	}{
		"a song and its cover":  {mediagate.Outcome{Media: []mediagate.Media{song, cover}}, true, true, false},
		"one of two songs":      {mediagate.Outcome{Media: []mediagate.Media{song}}, false, true, true},
		"a cover without song":  {mediagate.Outcome{Media: []mediagate.Media{cover}}, true, false, true},
		"nothing":               {mediagate.Outcome{}, true, false, true},
		"a text without a file": {mediagate.Outcome{Made: &mediagate.Made{Descriptions: []string{"a cat"}}}, true, true, false},
	} {
		var r mediagate.Report
		out := c.out
		r.Offer(&out, c.whole)
		if r.Outcome.Succeeded != c.succeeded || r.Incomplete != c.incomplete || (r.Outcome.Failure == nil) != c.succeeded {
			t.Errorf("%s: %+v, incomplete %v", name, r.Outcome, r.Incomplete)
		}
	}
}
