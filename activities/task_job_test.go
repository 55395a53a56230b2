package activities_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/task"
)

// jobOf returns a job that fails all tasks of the account.
func jobOf(perSecond int) activities.JobArgs {
	return activities.JobArgs{TaskJob: mediagate.TaskJob{
		ID: "job_1", Filter: mediagate.TaskFilter{AccountID: "acc_1", CreatedBefore: time.Now()},
		Action: mediagate.ActionFail,
		Reason: "a test", By: mediagate.AdminOperator, PerSecond: perSecond,
	}}
}

// withTasks returns a world with n open tasks of acc_1 and one of acc_2. They were made one
// second ago, although their ids are much older.
func withTasks(t *testing.T, n int) *activitytest.World {
	t.Helper()
	w := activitytest.New(t, time.Now)
	add := func(id, account string) {
		t := w.NewVideo()
		t.ID, t.AccountID, t.CreatedAt = id, account, time.Now().Add(-time.Second)
		w.Store.Add(t)
	}
	for i := range n {
		add(fmt.Sprintf("task_00%03d", i), "acc_1")
	}
	add("task_other", "acc_2")
	return w
}

// act runs the activity once, from the heartbeat of an earlier try if there is one.
func act(
	w *activitytest.World, in activities.JobArgs, stop chan struct{}, beat *activities.JobProgress,
) (p activities.JobProgress, err error) {
	env := newEnv(w)
	env.SetTestTimeout(time.Hour)
	env.SetWorkerStopChannel(stop)
	if beat != nil {
		env.SetHeartbeatDetails(*beat)
	}
	value, err := env.ExecuteActivity(w.Activities.ActOnTasks, in)
	if err == nil {
		err = value.Get(&p)
	}
	return p, err
}

// commanded returns the tasks that have a command on record, once for each command.
func commanded(w *activitytest.World) (ids []string) {
	for _, a := range w.Store.Actions() {
		ids = append(ids, a.TaskID)
	}
	slices.Sort(ids)
	return ids
}

// TestActOnTasks checks that each task that the filter selects is given the command once, at the
// job's rate. A task that has ended is counted, and is not an error. A try that repeats another
// changes nothing.
func TestActOnTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := withTasks(t, 150) // more than a page
		for _, event := range []task.Event{task.CancelRequested{}, task.EndDue{}} {
			if _, err := w.Store.Change(t.Context(), "task_00007", event); err != nil {
				t.Fatal(err)
			}
		}
		in, began := jobOf(10), time.Now()
		p, err := act(w, in, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := activities.JobProgress{After: "task_00000", Done: 149, Skipped: 1, Ended: true}
		same(t, "progress", p, want)
		if took := time.Since(began); took < 14*time.Second || took > 16*time.Second {
			t.Errorf("150 tasks at 10 a second took %s", took)
		}
		ids := commanded(w)
		if len(ids) != 149 || slices.Contains(ids, "task_00007") || slices.Contains(ids, "task_other") ||
			len(slices.Compact(slices.Clone(ids))) != 149 {
			t.Errorf("%d commands: %v", len(ids), ids)
		}
		if a := w.Store.Actions()[0]; a.ID != "act_job_1/task_00149" || a.Reason != "a test" ||
			a.By != mediagate.AdminOperator {
			t.Errorf("the first command is %+v", a)
		}
		again, err := act(w, in, nil, &activities.JobProgress{After: "task_00100", Done: 49})
		if err != nil || !again.Ended || again.Done != 148 || again.Skipped != 1 {
			t.Errorf("%+v, %v", again, err)
		}
		if got := commanded(w); len(got) != 149 {
			t.Errorf("%d commands after a repetition", len(got))
		}
	})
}

// TestActOnTasksThatGrow checks that a job handles the tasks that existed when it began, however
// many come meanwhile.
func TestActOnTasksThatGrow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := withTasks(t, 3)
		in := jobOf(1000)
		for i := range 3 {
			late := w.NewVideo()
			late.ID, late.AccountID, late.CreatedAt = fmt.Sprintf("task_009%d", i), "acc_1", time.Now().Add(time.Second)
			w.Store.Add(late)
		}
		p, err := act(w, in, nil, nil)
		if err != nil || p.Done != 3 || !p.Ended {
			t.Errorf("%+v, %v", p, err)
		}
		in.Filter.AccountID = "acc_3"
		if p, err := act(w, in, nil, nil); err != nil || p != (activities.JobProgress{Ended: true}) {
			t.Errorf("of nothing: %+v, %v", p, err)
		}
	})
}

// TestActOnTasksHandsOver checks that a try returns its progress when its time is over, and when
// its worker stops.
func TestActOnTasksHandsOver(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stopAfter time.Duration
		least     int
		most      int
	}{
		"its time is over":  {time.Hour, 29, 32},
		"its worker stops":  {5 * time.Second, 4, 7},
		"a stopping worker": {0, 0, 1},
	} {
		inBubble(t, name, func(t *testing.T) {
			w, stop := withTasks(t, 100), make(chan struct{})
			timer := time.AfterFunc(test.stopAfter, func() { close(stop) })
			defer timer.Stop()
			synctest.Wait()
			p, err := act(w, jobOf(1), stop, nil)
			if err != nil || p.Ended || p.Done < test.least || p.Done > test.most || p.Done != len(commanded(w)) {
				t.Errorf("%+v, %v, %d commands", p, err, len(commanded(w)))
			}
		})
	}
}

// TestActOnTasksThatFail checks that a task whose command meets errors is tried again, and
// skipped in the end. While tasks cannot be listed, none counts as failed.
func TestActOnTasksThatFail(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		method string
		tries  int
		want   activities.JobProgress // the progress if the try succeeds
	}{
		"the first time": {"Command", 0, activities.JobProgress{}},
		"the last time":  {"Command", 4, activities.JobProgress{After: "task_00000", Failed: 1, Ended: true}},
		"no list":        {"SelectTasks", 4, activities.JobProgress{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withTasks(t, 1)
			w.Store.Fault = failsWith(test.method, errors.New("out of order"))
			in := jobOf(1000)
			p, err := act(w, in, nil, &activities.JobProgress{Tries: test.tries})
			if test.want.Ended {
				if diff := cmp.Diff(test.want, p); err != nil || diff != "" {
					t.Errorf("%v (-want +got):\n%s", err, diff)
				}
			} else if err == nil {
				t.Errorf("%+v, and no error", p)
			}
		})
	}
}

// TestActOnTasksReroute checks that no task is rerouted to a channel that does not serve it.
func TestActOnTasksReroute(t *testing.T) {
	t.Parallel()
	for channel, want := range map[string]activities.JobProgress{
		activitytest.AsyncChannel: {After: "task_00000", Done: 1, Ended: true},
		activitytest.SyncChannel:  {After: "task_00000", Skipped: 1, Ended: true},
	} {
		t.Run(channel, func(t *testing.T) {
			t.Parallel()
			w := withTasks(t, 1)
			in := jobOf(1000)
			in.Action, in.Channel = mediagate.ActionReroute, channel
			p, err := act(w, in, nil, nil)
			if diff := cmp.Diff(want, p); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if commands := w.Store.Actions(); len(commands) > 0 && (commands[0].Channel != channel || !strings.HasPrefix(
				commands[0].ID, "act_",
			)) {
				t.Errorf("%+v", commands)
			}
		})
	}
}
