package view_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task/view"
)

// No link outlives its file, and one that is gone says since when.
func TestLinks(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	ended := time.Unix(1_000_000, 0)
	for name, c := range map[string]struct {
		kept    time.Duration
		forever bool
		removed bool
		age     time.Duration
		url     bool
		expires time.Duration // after the end
	}{
		"young":               {30 * day, false, false, day, true, 8 * day},
		"its last week":       {30 * day, false, false, 29 * day, true, 30 * day},
		"its last second":     {30 * day, false, false, 30*day - time.Second, true, 30 * day},
		"over":                {30 * day, false, false, 30 * day, false, 30 * day},
		"removed":             {30 * day, false, true, 40 * day, false, 30 * day},
		"removed, kept anew":  {90 * day, false, true, 40 * day, false, 40 * day},
		"for ever":            {0, false, false, 400 * day, true, 407 * day},
		"of a model for ever": {30 * day, true, false, 400 * day, true, 407 * day},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := mediagate.Task{
				Status: mediagate.StatusCompleted, Type: mediagate.TypeVideo, EndedAt: ended, Plan: mediagate.Plan{
					KeepForever: c.forever,
				},
				Results: []mediagate.Result{{Key: "k", MimeType: "video/mp4", Size: 7}},
			}
			if c.removed {
				task.Results[0].Key = ""
			}
			now := ended.Add(c.age)
			links, err := view.Links{
				TTL: 7 * day, Keep: mediagate.Retention{Results: c.kept}, Now: func() time.Time { return now },
				Sign: func(_ context.Context, _ mediagate.Result, ttl time.Duration) (mediagate.Link, error) {
					return mediagate.Link{URL: "https://a/0", ExpiresAt: now.Add(ttl)}, nil
				},
			}.Of(t.Context(), &task)
			if err != nil {
				t.Fatal(err)
			}
			want := view.Item{URL: []string{}, ExpiresAt: ended.Add(c.expires).Unix(), MimeType: "video/mp4", SizeBytes: 7}
			if c.url {
				want.URL = []string{"https://a/0"}
			}
			if diff := cmp.Diff(&view.Result{Videos: []view.Item{want}}, view.Of(&task, 1000, links).Result); diff != "" {
				t.Errorf("the result (-want +got):\n%s", diff)
			}
		})
	}
}

// A song whose file is not kept any more is still a completed one.
func TestSongsWithoutTheirFiles(t *testing.T) {
	t.Parallel()
	task := mediagate.Task{
		Status: mediagate.StatusCompleted, Type: mediagate.TypeMusic, Model: "music-a",
		Made:    &mediagate.Made{Clips: []mediagate.Clip{{ID: "gone"}, {ID: "lost"}}},
		Results: []mediagate.Result{{MimeType: "audio/mpeg", Duration: 12}},
	}
	music := view.Of(&task, 1000, []mediagate.Link{{ExpiresAt: time.Unix(5, 0)}}).Result.Music
	got := [2]string{music[0].(view.Song).Status, music[1].(view.Song).Status}
	if got != [2]string{"completed", "failed"} || music[0].(view.Song).AudioURL != nil {
		t.Errorf("the songs are %v: %+v", got, music)
	}
}

// A link that cannot be signed is an error, and a task that has no files has no links.
func TestLinksThatCannotBe(t *testing.T) {
	t.Parallel()
	sign := func(context.Context, mediagate.Result, time.Duration) (mediagate.Link, error) {
		return mediagate.Link{}, errors.New("no credentials")
	}
	links := view.Links{TTL: time.Hour, Now: time.Now, Sign: sign}
	task := mediagate.Task{Status: mediagate.StatusCompleted, Results: []mediagate.Result{{Key: "k"}}}
	if _, err := links.Of(t.Context(), &task); err == nil {
		t.Error("no error")
	}
	task.Status = mediagate.StatusFailed
	if got, err := links.Of(t.Context(), &task); err != nil || got != nil {
		t.Errorf("%v, %v", got, err)
	}
}
