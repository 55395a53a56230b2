package durable_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/api/workflow/v1"

	"github.com/mediagate/mediagate"
)

// D18: an account whose servers crawl keeps its own tasks waiting, however many
// it has. Who comes later is looked at when the next place is free, not when the
// whole backlog has been.
func TestD18InputsAreFairBetweenAccounts(t *testing.T) {
	t.Parallel()
	const (
		places = 100 // of one process
		tasks  = places + 30
		turns  = 5
	)
	w := setup(t)
	w.Activities.Settings.InputPace.Look = time.Hour // the places are taken until the test frees them
	w.Activities.Settings.InputPace.Whole, w.Activities.Settings.CheckTime = time.Hour, time.Hour
	var begun atomic.Int64
	var served atomic.Bool
	free := make(chan struct{})
	w.Fetcher.OnFetch = func(ctx context.Context, url, _ string) (io.ReadCloser, int64, error) {
		if strings.HasSuffix(url, "/newcomer") {
			served.Store(true)
		} else {
			begun.Add(1)
			select {
			case <-free:
			case <-ctx.Done():
			}
		}
		return nil, 0, mediagate.Errorf(mediagate.KindGone, "404")
	}
	begin := func(id, account, path string) {
		task := w.NewVideo()
		task.AccountID = account
		task.Params = json.RawMessage(`{"image_urls":["https://m.example.com/` + path + `"]}`)
		task.Plan.Inputs = []mediagate.Input{{Field: "image_urls[0]", MediaBounds: mediagate.MediaBounds{Kind: "image", MinSide: 128}}}
		w.begin(task, id, time.Hour)
	}
	checked := func(id string) { // or about to be
		w.awaits(id+" is in the queue", func() bool {
			return slices.ContainsFunc(w.pending(id), func(p *workflow.PendingActivityInfo) bool {
				return p.GetActivityType().GetName() == "CheckInputs"
			})
		})
	}
	w.serves(nil)
	for i := range tasks {
		begin(fmt.Sprintf("task_%03d", i), "acc_crawling", "slow")
	}
	w.awaits("every place is taken", func() bool { return begun.Load() == places })
	for i := range tasks {
		checked(fmt.Sprintf("task_%03d", i))
	}
	begin("task_newcomer", "acc_new", "newcomer")
	checked("task_newcomer")

	for turn := int64(1); turn <= turns && !served.Load(); turn++ {
		free <- struct{}{}
		w.awaits("the place is taken again", func() bool { return served.Load() || begun.Load() == places+turn })
	}
	if !served.Load() {
		t.Errorf("%d places became free, and all went to the account that has the others", turns)
	}
	close(free)
	w.ended("task_newcomer", mediagate.StatusFailed, mediagate.CodeImageProcessing)
}
