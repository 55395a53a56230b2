package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// long skips a scenario that takes minutes, unless the run includes such scenarios.
func long(t *testing.T) {
	t.Helper()
	if !suite.verify {
		t.Skip("takes minutes: MEDIAGATE_VERIFY=1")
	}
}

// calling waits until the vendor has the job of each task, and returns how many of the submits
// have no answer yet.
func (w *world) calling(tasks []*task) (open int) {
	w.t.Helper()
	ids := make([]string, len(tasks))
	for i, t := range tasks {
		ids[i] = t.id
	}
	eventually(w.t, 2*time.Minute, "every vendor has been called", func() error {
		a, err := w.file(w.sandbox + "/_sandbox/jobs")
		if err != nil {
			return err
		}
		var list struct {
			Jobs []struct {
				Prompt string `json:"prompt"`
			} `json:"jobs"`
		}
		if err := a.decode(&list); err != nil {
			return err
		}
		made := 0
		for _, t := range tasks {
			for _, j := range list.Jobs {
				if strings.Contains(j.Prompt, t.ref) {
					made++
				}
			}
		}
		if made < len(tasks) {
			err = fmt.Errorf("%d of %d jobs are made", made, len(tasks))
		}
		return err
	})
	got, err := w.column("SELECT task_id FROM attempts WHERE state = 'intent' AND task_id = ANY($1)", ids)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(got)
}

// TestVerifyLapse fails over to a standby that lacks the last seconds. In these seconds the
// submits of five tasks have begun, whose vendors answer afterwards, and four other tasks have
// been made and have ended. No vendor makes a second job, and all tasks complete.
func TestVerifyLapse(t *testing.T) {
	t.Parallel()
	long(t)
	w := newWorld(t, options{shape: production, ownPostgres: true, workersOff: true})
	var calling, ended []*task
	for _, model := range []string{alpha, beta, delta, gamma, epsilonFast} {
		calling = append(calling, w.submit(job{model: model, directive: "answer=25s, duration=1s", noHook: true}))
	}
	calling[4].price = "0.8"
	for _, model := range []string{beta, delta, gamma, epsilonFast} {
		ended = append(ended, w.submit(job{model: model, directive: "duration=0", noHook: true}))
	}
	ended[3].price = "0.8"
	backup := w.database.backup(t)
	w.workers[0].start(t)
	for _, one := range ended {
		w.await(one, time.Minute, "completes", func(o object) bool { return o.Status == "completed" })
	}
	if open := w.calling(calling); open < len(calling) {
		t.Fatalf("%d of %d calls were answered before the lapse: the machine is too slow for this scenario", len(calling)-open, len(calling))
	}
	w.database.lapse(t, backup)
	w.verify(recoverTime)
}

// TestVerifyAbsence makes the database unavailable for three minutes during 200 submits to a
// vendor that cannot look a job up by our id. All answers are stored afterwards, and no submit
// becomes unknown.
func TestVerifyAbsence(t *testing.T) {
	t.Parallel()
	long(t)
	w := newWorld(t, options{shape: production, ownPostgres: true, workersOff: true})
	tasks := w.submitMany(200, job{model: delta, directive: "answer=25s, duration=1s", noHook: true})
	w.workers[0].start(t)
	t.Logf("%d submits are in their calls", w.calling(tasks))
	w.database.kill(t)
	time.Sleep(3 * time.Minute) // the database must be away this long
	w.database.start(t)
	eventually(t, recoverTime, "all answers are stored", func() error {
		states, err := w.column("SELECT count(*) || ' ' || state FROM attempts WHERE state IN ('intent', 'unknown') GROUP BY state ORDER BY state")
		switch {
		case err != nil:
			return err
		case slices.ContainsFunc(states, func(s string) bool { return strings.HasSuffix(s, "unknown") }):
			return &stopError{fmt.Sprintf("attempts: %v", states)}
		case len(states) > 0:
			return fmt.Errorf("attempts: %v", states)
		}
		return nil
	})
	w.verify(recoverTime)
}

// TestVerifyFailover loses commits of the gateway and of Temporal, whose databases are on one
// server. It follows the page DatabaseLapsed from the first step to the last. Every task in the
// database ends, no task with a recorded job gets a second job, and the books are right.
func TestVerifyFailover(t *testing.T) {
	t.Parallel()
	long(t)
	w := newWorld(t, options{shape: production, ownPostgres: true, ownTemporal: true, oneServer: true})
	var atVendor []*task
	for _, model := range []string{alpha, beta, delta, gamma} {
		one := w.submit(job{model: model, directive: "duration=15s", noHook: true})
		w.awaitProcessing(one)
		atVendor = append(atVendor, one)
	}
	backup := w.database.backup(t)
	to := time.Now()
	lost := w.submit(job{model: alpha, directive: "duration=600s", noHook: true})
	w.awaitProcessing(lost)
	for _, one := range atVendor {
		w.await(one, recoverTime, "completes", func(o object) bool { return o.Status == "completed" })
	}
	w.database.lapse(t, backup)
	w.awaitReadiness(http.StatusOK, "")

	// The steps of the page.
	w.workers[0].kill()
	w.temporal.restart(t)
	w.recover(to)
	w.workers[0].start(t)
	if _, err := w.read(lost.id); err == nil {
		t.Error("the task of the lost seconds is there")
	}
	w.tasks = slices.DeleteFunc(w.tasks, func(t *task) bool { return t == lost })
	w.submit(job{model: theta})
	eventually(t, recoverTime, "nothing is left to decide", func() error {
		d := w.recover(to)
		var left []error
		for _, one := range d.Data {
			if one.Kind == "task" {
				left = append(left, fmt.Errorf("%s of %s", one.ID, one.Model))
			}
		}
		return errors.Join(left...)
	})
	w.verify(recoverTime)
	w.command("ledger", "check")
}
