package view_test

import (
	"encoding/json"
	"regexp"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task/view"
)

// No length or time of a file has more than three decimals.
func TestDurationsHaveThreeDecimals(t *testing.T) {
	t.Parallel()
	at, odd := time.Unix(1000, 0), 131.16123456789
	var link mediagate.Link
	link.URL, link.ExpiresAt = "https://a.example/1", at
	results := []mediagate.Result{{MimeType: "audio/mpeg", Size: 1, Duration: odd}}
	made := &mediagate.Made{Clips: []mediagate.Clip{{ID: "c", Timing: [][2]float64{{odd, 2 * odd}}}}}
	task := func(kind mediagate.Type, model string) *mediagate.Task {
		return &mediagate.Task{
			Status: mediagate.StatusCompleted, Type: kind, Model: model, CreatedAt: at, EndedAt: at.Add(
				88123456 * time.Microsecond,
			),
			Plan: mediagate.Plan{Expected: 1234567 * time.Microsecond}, Results: results, Made: made,
		}
	}
	long := regexp.MustCompile(`[0-9]+\.[0-9]{4,}`)
	for name, answer := range map[string]any{
		"video":         view.Of(task(mediagate.TypeVideo, "alpha-v3"), 1000, []mediagate.Link{link}),
		"song":          view.Of(task(mediagate.TypeMusic, "music-a"), 1000, []mediagate.Link{link}),
		"song of flow":  view.Of(task(mediagate.TypeMusic, "music-b"), 1000, []mediagate.Link{link}),
		"the older one": view.LegacyOf(task(mediagate.TypeImage, "zeta"), []mediagate.Link{link}),
	} {
		text, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		if found := long.FindAllString(string(text), -1); found != nil {
			t.Errorf("%s: %v in %s", name, found, text)
		}
	}
}
