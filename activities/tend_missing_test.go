package activities_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
)

// D11: a worker that lacks the channel leaves it to others; once nobody had
// it for ten minutes, its tasks are in trouble.
func TestD11TendMissingChannel(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		unseen  time.Duration
		up      time.Duration // of this worker; 0: for ever
		trouble string
	}{
		"seen just now":        {0, 0, ""},
		"seen within grace":    {10*time.Minute - time.Second, 0, ""},
		"gone for the grace":   {10 * time.Minute, 0, mediagate.ParkChannelMissing},
		"gone for much longer": {time.Hour, 0, mediagate.ParkChannelMissing},
		"gone, worker is new":  {time.Hour, 10*time.Minute - time.Second, ""},
		"gone, worker waited":  {time.Hour, 10 * time.Minute, mediagate.ParkChannelMissing},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := newTending(t, 1)
				d.Store.SeeChannel(activitytest.AsyncChannel, time.Now())
				d.Channels.Set()
				time.Sleep(max(c.unseen, 0))
				if c.up > 0 {
					d.Activities.StartedAt = time.Now().Add(-c.up)
				}
				if c.unseen < 15*time.Second {
					d.hint()
				}
				d.begin()
				err := <-d.done
				kind(t, err, mediagate.KindUnreached, mediagate.ParkChannelMissing, true)
				if got := d.trouble("task-0"); got != c.trouble {
					t.Errorf("trouble %q, want %q", got, c.trouble)
				}
				if got := len(d.Engine.Calls()); (got == 1) != (c.trouble != "") {
					t.Errorf("signals %v", d.Engine.Calls())
				}
				if c.trouble == "" {
					return
				}
				time.Sleep(time.Minute) // the signal stays owed, as with a channel that is there
				d.begin()
				kind(t, <-d.done, mediagate.KindUnreached, mediagate.ParkChannelMissing, true)
				if got := len(d.Engine.Calls()); got != 2 {
					t.Errorf("%d signals, want a second one", got)
				}
			})
		})
	}
}

func (d *tending) hint() {
	d.t.Helper()
	if err := d.Store.HintPoll(context.Background(), "task-0"); err != nil {
		d.t.Fatal(err)
	}
}
