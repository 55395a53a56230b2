package durable_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/limit"
)

// TestD18InputsAreFairBetweenAccounts checks that an account with slow servers delays only its
// own tasks, even if it has more tasks than the queue has slots (D18). The inputs of another
// account are checked meanwhile. In the end all tasks end.
func TestD18InputsAreFairBetweenAccounts(t *testing.T) {
	t.Parallel()
	const tasks = 150
	w := setup(t)
	w.Activities.Limits.Inputs = limit.New("inputs", 8)
	var crawling atomic.Int64 // files of the crowd that are open
	free := make(chan struct{})
	w.Fetcher.OnFetch = func(ctx context.Context, url, _ string) (io.ReadCloser, int64, error) {
		if !strings.HasSuffix(url, "/newcomer") {
			crawling.Add(1)
			defer crawling.Add(-1) // a check that is cut off for lack of a heartbeat is repeated
			select {
			case <-free:
			case <-ctx.Done():
			}
		}
		return nil, 0, mediagate.Errorf(mediagate.KindGone, "404")
	}
	w.Activities.Settings.InputPace.Silence, w.Activities.Settings.InputPace.Whole, w.Activities.Settings.CheckTime = time.Hour, time.Hour, time.Hour
	begin := func(id, account, path string) {
		task := w.NewVideo()
		task.AccountID = account
		task.Params = json.RawMessage(`{"image_urls":["https://m.example.com/` + path + `"]}`)
		task.Plan.Inputs = []mediagate.Input{{Field: "image_urls[0]", MediaBounds: mediagate.MediaBounds{Kind: "image", MinSide: 128}}}
		w.startTask(task, id, time.Hour)
	}
	w.startWorker(nil)
	for i := range tasks {
		begin(fmt.Sprintf("task_%03d", i), "acc_crawling", "slow")
	}
	w.await("the account has its share", func() bool { return crawling.Load() == 4 })
	begin("task_newcomer", "acc_new", "newcomer")
	w.expectEnd("task_newcomer", mediagate.StatusFailed, mediagate.CodeImageProcessing)
	if n := crawling.Load(); n > 4 {
		t.Errorf("%d files of the crowd are open, want its share of 4", n)
	}
	close(free)
	for i := range tasks {
		w.expectEnd(fmt.Sprintf("task_%03d", i), mediagate.StatusFailed, mediagate.CodeImageProcessing)
	}
}
