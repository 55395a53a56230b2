package activities_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/task"
)

// restored returns a task of a backup that has no attempt, after its run has asked.
func restored(t *testing.T, new func(*activitytest.World) mediagate.Task) *bundle {
	t.Helper()
	b := setup(t, new)
	b.restore()
	b.submit(1) // a run got this step before the restore
	b.advance(time.Minute)
	if answer := b.ask(); answer.State != mediagate.AttemptUnknown || answer.Step.Kind != task.Lookup {
		t.Fatalf("answer %+v", answer)
	}
	b.submitted()
	return b
}

// TestD17LostAttempt checks that an attempt that may have been made since the backup is not made
// again.
func TestD17LostAttempt(t *testing.T) {
	t.Parallel()
	away := func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindTransient, "away")
	}
	for name, c := range map[string]struct {
		job     func(*activitytest.World) mediagate.Task
		vendor  func(*bundle)
		state   mediagate.AttemptState
		channel string
		failed  bool
	}{
		"the vendor has the job": {video, func(b *bundle) {
			_, err := b.Async.Accept(mediagate.Job{ExternalID: taskID})
			b.ok(err)
		}, mediagate.AttemptAccepted, activitytest.AsyncChannel, false},
		"the vendor has no job":      {video, func(*bundle) {}, mediagate.AttemptUnknown, "", false},
		"the vendor is away":         {video, func(b *bundle) { b.Async.OnFind = away }, mediagate.AttemptUnknown, "", true},
		"the vendor cannot be asked": {image, func(*bundle) {}, mediagate.AttemptUnknown, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := restored(t, c.job)
			c.vendor(b)
			if _, err := b.tryStep(task.Lookup, 1); (err != nil) != c.failed {
				t.Errorf("error %v", err)
			}
			if a := b.attempt(1); a.State != c.state || a.Channel != c.channel {
				t.Errorf("attempt %+v", a)
			}
			b.submitted()
		})
	}
}

// restore takes the task back to its submit.
func (b *bundle) restore() {
	b.t.Helper()
	b.Store.Unsend(taskID)
	b.change(task.Restored{At: b.Now()})
}

// hangs is a vendor that takes the question for a job and does not answer it.
func hangs(ctx context.Context, _ mediagate.JobRef) (mediagate.Report, error) {
	<-ctx.Done()
	return mediagate.Report{}, mediagate.Errorf(mediagate.KindTransient, "no answer")
}

// TestD11LostAttemptAmongHangingChannels checks that channels that hang take no time from the one
// that has the job. A lookup has a minute.
func TestD11LostAttemptAmongHangingChannels(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bundle{t: t, clock: &clock{}, World: activitytest.New(t, time.Now)}
		b.Store.Add(b.NewVideo())
		first, second := b.account("first", 0, 0), b.account("second", 0, 0)
		silent := &activitytest.Vendor{OnFind: hangs}
		first.Vendor, second.Vendor = silent.Finding(), silent.Finding()
		b.Channels.Set(first, second, b.account("third", 0, 0))
		b.Store.Unsend(taskID)
		b.change(task.Restored{At: time.Now()})
		b.submit(1) // a run got this step before the restore
		time.Sleep(time.Minute)
		b.ask()
		_, err := b.Async.Accept(mediagate.Job{ExternalID: taskID})
		b.ok(err)
		asked := time.Now()
		b.step(task.Lookup, 1)
		if took := time.Since(asked); took >= time.Minute {
			t.Errorf("the lookup took %v", took)
		}
		if a := b.attempt(1); a.State != mediagate.AttemptAccepted || a.Channel != "third" || len(silent.Finds()) != 2 {
			t.Errorf("attempt %+v, %d questions to the others", a, len(silent.Finds()))
		}
	})
}

// TestD17LostFiles checks that the files of a synchronous call, and the manifest that its sender
// left with them, outlive the rows.
func TestD17LostFiles(t *testing.T) {
	t.Parallel()
	b := setup(t, image)
	b.handsOver("first", "second")
	b.dies()
	b.restore()
	b.ask()
	if answer := b.step(task.Lookup, 1); answer.Step.Kind != task.Mirror || answer.Channel != activitytest.SyncChannel {
		t.Fatalf("answer %+v", answer)
	}
	answer, err := b.mirror()
	b.ok(err)
	if answer.Status != mediagate.StatusCompleted {
		t.Errorf("answer %+v", answer)
	}
	b.submitted(taskID)
}
