package api

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMatches(t *testing.T) {
	t.Parallel()
	if matches("Alpha-v3", "alpha-v3") || matches("gamma2.6", "gamma2x6") {
		t.Error("another letter matches")
	}
	if !matchesAny(nil, "alpha-v3") || matchesAny([]string{"beta"}, "alpha-v3") || !matchesAny([]string{"beta", "alias"}, "id", "alias") {
		t.Error("lists are judged wrongly")
	}
}

// TestMatchesMakesNoGarbage checks that matching allocates nothing: each call compares all
// patterns of a key, which clients choose, with all models.
func TestMatchesMakesNoGarbage(t *testing.T) {
	const name = "alpha-v3-turbo"
	for _, pattern := range []string{strings.Repeat("*", maxText), strings.Repeat("a*", maxText/2), strings.Repeat("*-", maxText/2), "alpha-*", name} {
		if n := testing.AllocsPerRun(10, func() { matches(pattern, name) }); n != 0 {
			t.Errorf("%q: %v allocations", pattern, n)
		}
	}
}

func TestMatchesIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pattern, name := rapid.StringMatching(`[ab*]{0,8}`).Draw(t, "pattern"), rapid.StringMatching(`[ab]{0,8}`).Draw(t, "name")
		want := regexp.MustCompile("^" + strings.ReplaceAll(pattern, "*", ".*") + "$").MatchString(name)
		if got := matches(pattern, name); got != want {
			t.Fatalf("matches(%q, %q) = %t", pattern, name, got)
		}
	})
}
