package activities_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/task"
)

// TestD11TendMissingChannel checks that a worker that lacks the channel leaves it to others, and
// that its tasks are in trouble once no worker has had it for ten minutes.
func TestD11TendMissingChannel(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		unseen time.Duration
		up     time.Duration // how long this worker has run; 0 for ever
		gone   bool
	}{
		"seen within grace":   {10*time.Minute - time.Second, 0, false},
		"gone for the grace":  {10 * time.Minute, 0, true},
		"gone, worker is new": {time.Hour, 10*time.Minute - time.Second, false},
		"gone, worker waited": {time.Hour, 10 * time.Minute, true},
	}
	for name, c := range cases {
		inBubble(t, name, func(t *testing.T) {
			d := newTending(t, 1)
			d.Store.SeeChannel(activitytest.AsyncChannel)
			d.Channels.Set()
			time.Sleep(c.unseen)
			if c.up > 0 {
				d.Activities.StartedAt = time.Now().Add(-c.up)
			}
			d.begin()
			if !c.gone {
				err := <-d.done
				kind(t, err, mediagate.KindUnreached, "channel_elsewhere", true)
				if !activities.NoFault(err) {
					t.Errorf("%v is not quiet", err)
				}
				if got := d.trouble("task-0"); got != "" || len(d.Engine.Calls()) > 0 {
					t.Errorf("trouble %q, signals %v", got, d.Engine.Calls())
				}
				return
			}
			time.Sleep(time.Second)
			if got := d.trouble("task-0"); got != mediagate.ParkChannelMissing || len(d.Engine.Calls()) != 1 {
				t.Errorf("trouble %q, signals %v", got, d.Engine.Calls())
			}
			if err := <-d.done; err != nil || !d.gone {
				t.Errorf("gone %v, error %v", d.gone, err)
			}
		})
	}
}

// TestD2RemovedChannelRests checks the activity of a removed channel. It goes on quietly while a
// task is queued for the channel, ends for good when none is, and ends to be tried elsewhere when
// a worker has the channel after all.
func TestD2RemovedChannelRests(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		then func(*tending)
		gone bool
	}{
		"the last task goes":     {func(d *tending) { d.change("task-0", task.CancelRequested{}, task.EndDue{}) }, true},
		"the channel comes back": {func(d *tending) { d.Store.SeeChannel(activitytest.AsyncChannel) }, false},
	}
	for name, c := range cases {
		inBubble(t, name, func(t *testing.T) {
			d := newTending(t, 0)
			added := d.NewVideo()
			added.ID = "task-0"
			added.DeadlineAt = time.Now().Add(24 * time.Hour)
			d.Store.Add(added)
			d.change(added.ID, task.Queued{N: 1, Channels: []string{activitytest.AsyncChannel}})
			d.Channels.Set()
			var reads atomic.Int64
			d.Store.Fault = func(method string) error {
				if method == "ChannelStates" {
					reads.Add(1)
				}
				return nil
			}
			time.Sleep(time.Hour)
			d.begin()
			time.Sleep(5 * time.Minute)
			select {
			case err := <-d.done:
				t.Fatalf("it has ended: %v", err)
			default:
			}
			if n := reads.Load(); n < 10 || n > 40 {
				t.Errorf("%d looks in five minutes", n)
			}
			c.then(d)
			time.Sleep(20 * time.Second)
			if err := <-d.done; (err == nil) != c.gone || d.gone != c.gone {
				t.Errorf("gone %v, error %v", d.gone, err)
			}
		})
	}
}
