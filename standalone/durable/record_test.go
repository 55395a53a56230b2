package durable_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/workflows"
)

// recordings holds the functions that play the recorded runs, by the name of the history. Each
// returns the id of the workflow whose history is recorded.
var recordings = map[string]func(*recording) (workflow string){
	// A video is submitted, polled and copied.
	"video": func(r *recording) string {
		r.start(r.video())
		r.accepted()
		r.Async.End(r.id, activitytest.Success())
		return r.completed(r.id)
	},
	// The vendor of an image answers with the file at once.
	"image": func(r *recording) string {
		r.Sync.OnSubmit = r.answersAtOnce
		r.start(r.NewImage())
		return r.completed(r.id)
	},
	// The vendor creates the job, the answer is lost, and the vendor cannot look the job up. The
	// task is parked until an operator retries it.
	"lost-and-retried": func(r *recording) string {
		answers := make(chan struct{})
		r.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
			select {
			case <-answers:
				return r.answersAtOnce(ctx, job)
			default:
				return mediagate.Submission{}, mediagate.Errorf(mediagate.KindAmbiguous, "the answer was lost")
			}
		}
		t := r.NewImage()
		t.Plan.OnUnknown = mediagate.OnUnknownPark
		r.start(t)
		r.parked()
		close(answers)
		r.signal(mediagate.ActionRetry)
		return r.completed(r.id)
	},
	// The client cancels the task while its file is copied.
	"cancelled-while-mirroring": func(r *recording) string {
		copying := make(chan struct{}, 100)
		r.Activities.Settings.QuickCopy = 0
		r.Fetcher.OnFetch = func(ctx context.Context, _, _ string) (io.ReadCloser, int64, error) {
			copying <- struct{}{}
			<-ctx.Done()
			return nil, 0, mediagate.Errorf(mediagate.KindTransient, "cut: %w", ctx.Err())
		}
		r.start(r.video())
		r.accepted()
		r.Async.End(r.id, activitytest.Success())
		r.await("the copy begins", func() bool { return len(copying) > 0 })
		r.cancel(r.id)
		return r.completed(r.id)
	},
	// The bucket stores no file, so the task is parked until an operator retries it.
	"parked": func(r *recording) string {
		back := make(chan struct{})
		r.Bucket.OnMirror = func(string) error {
			select {
			case <-back:
				return nil
			default:
				return mediagate.Errorf(mediagate.KindUnavailable, "the bucket is away")
			}
		}
		r.start(r.video())
		r.accepted()
		r.Async.End(r.id, activitytest.Success())
		r.parked()
		close(back)
		r.signal(mediagate.ActionRetry)
		return r.completed(r.id)
	},
	// The client accepts the second delivery of its callback.
	"callback": func(r *recording) string {
		r.Sync.OnSubmit = r.answersAtOnce
		r.Deliverer.OnDeliver = func(n int) (mediagate.DeliveryResult, error) {
			if n == 1 {
				return mediagate.DeliveryResult{Outcome: mediagate.DeliveryRetry, Status: 503}, nil
			}
			return mediagate.DeliveryResult{Outcome: mediagate.DeliveryDone, Status: 200}, nil
		}
		r.start(r.NewImage())
		r.completed(r.id)
		return r.completed(workflows.IDWebhook(r.id, 1))
	},
	// A channel's activity moves from one worker to the next. The channel's workflow does not end.
	"channel": func(r *recording) string {
		id := workflows.IDChannel(activitytest.AsyncChannel)
		beats := func() bool {
			run, err := r.temporal.DescribeWorkflowExecution(r.t.Context(), id, "")
			if err != nil {
				return false
			}
			steps := run.GetPendingActivities()
			return len(steps) == 1 && steps[0].GetLastHeartbeatTime() != nil
		}
		r.start(r.video())
		r.await("the channel is tended", func() bool { return beats() })
		r.stop()
		r.await("the activity is handed over", func() bool { return !beats() })
		r.startWorker([]string{activitytest.AsyncChannel}, activitytest.AsyncProvider, activitytest.SyncProvider)
		r.await("the next worker tends the channel", beats)
		return id
	},
}

// recording is a world in which one run is recorded.
type recording struct {
	*world
	id   string
	stop func() // stops the worker
}

// record plays a run on a Temporal server and writes its history to the file.
func record(t *testing.T, name string) {
	t.Helper()
	r := &recording{world: setup(t), id: "task_" + name}
	r.stop = r.startWorker([]string{activitytest.AsyncChannel}, activitytest.AsyncProvider, activitytest.SyncProvider)
	text, err := protojson.Marshal(&historypb.History{Events: r.events(recordings[name](r))})
	if err != nil {
		t.Fatal(err)
	}
	if host, err := os.Hostname(); err == nil && host != "" {
		text = bytes.ReplaceAll(text, []byte(host), []byte("worker"))
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, text, "", " "); err != nil {
		t.Fatal(err)
	}
	pretty.WriteByte('\n')
	if err := os.WriteFile(historyFile(name), pretty.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// events returns the events of the workflow's newest run.
func (w *world) events(workflow string) (events []*historypb.HistoryEvent) {
	w.t.Helper()
	all := w.temporal.GetWorkflowHistory(w.t.Context(), workflow, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for all.HasNext() {
		event, err := all.Next()
		if err != nil {
			w.t.Fatal(err)
		}
		events = append(events, event)
	}
	return events
}

// latest reports whether the last event of the task's run is of the kind.
func (w *world) latest(id string, kind enumspb.EventType) bool {
	w.t.Helper()
	events := w.events(id)
	return events[len(events)-1].GetEventType() == kind
}

func (r *recording) video() mediagate.Task {
	t := r.NewVideo()
	t.Plan.Expected = 4 * time.Second // polled every 2 s
	return t
}

func (r *recording) answersAtOnce(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
	s, err := r.Sync.Accept(job)
	outcome := activitytest.Success()
	s.Outcome = &outcome
	return s, err
}

// start stores the task, with its callback, and starts its run.
func (r *recording) start(t mediagate.Task) {
	r.t.Helper()
	t.ID = r.id
	r.Store.Add(t)
	if err := r.engine.Start(r.t.Context(), t); err != nil {
		r.t.Fatal(err)
	}
}

// accepted waits until the vendor has the job and the run sleeps.
func (r *recording) accepted() {
	r.t.Helper()
	r.await("the vendor has the job", func() bool {
		return len(r.Async.Submits()) == 1 && r.latest(r.id, enumspb.EVENT_TYPE_TIMER_STARTED)
	})
}

// parked waits until the task is parked and the run sleeps.
func (r *recording) parked() {
	r.t.Helper()
	r.await("the task is parked", func() bool {
		return r.task(r.id).Wait.Reason != "" && r.latest(r.id, enumspb.EVENT_TYPE_TIMER_STARTED)
	})
}

// signal sends an operator's signal.
func (r *recording) signal(action string) {
	r.t.Helper()
	if err := r.temporal.SignalWorkflow(r.t.Context(), r.id, "", action, nil); err != nil {
		r.t.Fatal(err)
	}
}

// cancel cancels the task as the client does.
func (w *world) cancel(id string) {
	w.t.Helper()
	w.change(id, task.CancelRequested{})
	if _, err := w.engine.Wake(w.t.Context(), id); err != nil {
		w.t.Fatal(err)
	}
}

// completed waits for the end of the workflow and returns its id.
func (r *recording) completed(workflow string) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	if err := r.temporal.GetWorkflow(ctx, workflow, "").Get(ctx, nil); err != nil {
		r.t.Fatalf("workflow %s: %v", workflow, err)
	}
	return workflow
}
