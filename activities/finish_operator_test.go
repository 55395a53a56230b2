package activities_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/providers"
)

// together is a vendor that tells of many jobs in one answer.
type together struct{ providers.Provider }

func (v together) PollAll(ctx context.Context, refs []mediagate.JobRef) ([]providers.Answer, error) {
	answers := make([]providers.Answer, len(refs))
	for i, ref := range refs {
		answers[i].Report, answers[i].Err = v.Poll(ctx, ref)
	}
	return answers, nil
}

// Of many jobs that end at once, those whose turn does not come are told soon, also
// where each copy takes just less than it may.
func TestFinishEndedKeepsNoBatchWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const many = 200
		d := newTending(t, many)
		d.setChannel(func(c *channel.Channel) {
			c.Vendor = together{c.Vendor}
			c.Adapter.Description.Operations = map[string]providers.Operation{d.NewVideo().Plan.Routes[0].Operation: {Batch: many}}
		})
		told := make(chan time.Duration, 10*many)
		began := time.Now()
		d.Engine.OnUpstream = func(string, int) error {
			told <- time.Since(began)
			return nil
		}
		for i := range many {
			d.Async.End(fmt.Sprintf("task-%d", i), activitytest.Success())
		}
		d.Fetcher.OnFetch = func(context.Context, string, string) (io.ReadCloser, int64, error) {
			time.Sleep(4 * time.Second)
			return io.NopCloser(strings.NewReader("film")), 4, nil
		}
		d.Store.Fault = func(method string) error {
			switch method {
			case "ClaimDue": // until all are due
				time.Sleep(max(0, 20*time.Second-time.Since(began)))
			case "StorePolls": // until all answers are there
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		}
		d.tendsFor(2 * time.Minute)
		if len(told) < many {
			t.Fatalf("%d were told", len(told))
		}
		var last time.Duration
		for range many {
			last = <-told
		}
		if last > 30*time.Second {
			t.Errorf("the last run was told after %s", last)
		}
	})
}
