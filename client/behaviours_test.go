package client

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The constants of this client agree with the table that all clients share.
func TestBehaviours(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("behaviours.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	got := map[string]any{
		"tries": float64(tries), "first_pause": firstPause.Seconds(), "longest_pause": longestPause.Seconds(),
		"longest_silence": longestSilence.Seconds(), "longest_held": longestHeld.Seconds(), "least_pace": float64(leastPace),
		"poll": float64(pollSeconds), "look_pause": lookPause.Seconds(), "patience": patience.Seconds(),
		"submit_path": submitPath.String(),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-table +client):\n%s", diff)
	}
}
