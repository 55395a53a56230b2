package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/mediagate/mediagate/internal/failpoint"
	"github.com/mediagate/mediagate/sandbox/sample"
)

// The actions on a run in Temporal's UI.
const (
	terminated = "terminated"
	cancelled  = "cancelled"
	reset      = "reset"
)

// actOnRun performs such an action.
func (w *world) actOnRun(c client.Client, workflowID, how string) {
	w.t.Helper()
	if err := w.tryActOnRun(c, workflowID, how); err != nil {
		w.t.Fatalf("%s is not %s: %v", workflowID, how, err)
	}
}

// tryActOnRun is actOnRun for goroutines.
func (w *world) tryActOnRun(c client.Client, workflowID, how string) error {
	switch how {
	case terminated:
		return c.TerminateWorkflow(w.t.Context(), workflowID, "", "by a test")
	case cancelled:
		return c.CancelWorkflow(w.t.Context(), workflowID, "")
	default:
		decision, err := w.firstDecision(c, workflowID)
		if err != nil {
			return err
		}
		_, err = c.ResetWorkflowExecution(w.t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
			Namespace:                 w.namespace,
			WorkflowExecution:         &commonpb.WorkflowExecution{WorkflowId: workflowID},
			Reason:                    "by a test",
			WorkflowTaskFinishEventId: decision,
			RequestId:                 randomText(20),
		})
		return err
	}
}

// firstDecision returns the earliest event to which a run can be reset.
func (w *world) firstDecision(c client.Client, workflowID string) (int64, error) {
	history := c.GetWorkflowHistory(w.t.Context(), workflowID, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		if err != nil {
			return 0, err
		}
		if event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			return event.GetEventId(), nil
		}
	}
	return 0, errors.New("it has decided nothing yet")
}

// stepLease is how long a run may take to ask for its next step after it was given an activity
// (D2).
const stepLease = 10 * time.Minute

// endAfter returns the status of a task on whose run the action was performed before the end was
// stored.
func endAfter(how string) string {
	if how == cancelled {
		return "cancelled"
	}
	return "completed"
}

// waitState is a state in which a task waits.
type waitState struct {
	begin  func(*runWorld) *task
	begun  func(*runWorld, *task) error            // returns nil once the task is in the state
	end    string                                  // status unless the run is cancelled; empty: completed
	unsent bool                                    // if cancelled, the task ends before its vendor has a job
	after  func(*runWorld, map[string]*task) error // lets the tasks continue; the map's keys are the actions
}

// runWorld is a world on whose runs the test performs the actions.
type runWorld struct {
	*world
	slowURL   string
	requested sync.Map      // paths of requested slow pictures
	give      chan struct{} // closed to serve the pictures
}

// again is a suffix for the path of a picture that was requested more than once.
const again = " again"

// slow serves pictures once give is closed.
func (m *runWorld) slow() {
	m.t.Helper()
	m.give = make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.Trim(r.URL.Path, "/")
		if _, before := m.requested.LoadOrStore(name, true); before {
			m.requested.Store(name+again, true)
		}
		select {
		case <-m.give:
		case <-r.Context().Done():
			return
		}
		w.Header().Set("Content-Type", "image/png")
		_, _ = w.Write(sample.Image(640, 360))
	}))
	m.t.Cleanup(server.Close)
	m.slowURL = server.URL
}

// rowSays returns a condition: the query finds a row for the task.
func rowSays(query string) func(*runWorld, *task) error {
	return func(m *runWorld, t *task) error {
		rows, err := m.column(query, t.id)
		if err == nil && len(rows) == 0 {
			err = errors.New("it does not yet")
		}
		return err
	}
}

func begins(j job) func(*runWorld) *task { return func(m *runWorld) *task { return m.submit(j) } }

// waitStates are the states to test. Tasks that wait in the queue, for an operator or for modal
// parameters sleep like one that waits for its vendor. The random tests of package workflows
// perform the actions on those runs.
var waitStates = map[string]waitState{
	"checking inputs": {
		begin: func(m *runWorld) *task {
			name := randomText(10)
			t := m.submit(job{model: beta, fields: map[string]any{"image_urls": []string{m.slowURL + "/" + name}}})
			m.requested.Store(t.id, name)
			return t
		},
		unsent: true,
		begun: func(m *runWorld, t *task) error {
			name, _ := m.requested.Load(t.id)
			if _, ok := m.requested.Load(name); !ok {
				return errors.New("its picture was not requested")
			}
			return nil
		},
		after: func(m *runWorld, tasks map[string]*task) error { // the check without a run is stopped, and made again
			name, _ := m.requested.Load(tasks[terminated].id)
			err := until(m.t.Context(), recoverTime, func() error {
				if _, ok := m.requested.Load(fmt.Sprint(name) + again); !ok {
					return errors.New("the picture of the terminated run was not requested again")
				}
				return nil
			})
			close(m.give)
			return err
		},
	},
	// The answer may be lost with the run.
	"submitting": {
		begin: begins(job{model: theta, directive: "duration=40s"}), end: "either",
		begun: rowSays("SELECT task_id FROM attempts WHERE task_id = $1 AND state = 'intent'"),
	},
	"waiting for its vendor": {
		begin: begins(job{model: alpha, directive: "duration=30s"}),
		begun: rowSays("SELECT task_id FROM awaits WHERE task_id = $1"),
	},
	"copying": { // the first download hangs
		begin: begins(job{model: alpha, directive: "fail=timeout, at=download, times=1, result_bytes=12000000"}),
		begun: func(m *runWorld, t *task) error {
			jobs, err := m.jobs(t)
			if err == nil && (len(jobs) != 1 || jobs[0].Calls.Download == 0) {
				err = fmt.Errorf("the vendor's jobs: %+v", jobs)
			}
			return err
		},
	},
}

// TestRunsMeddledWith terminates, cancels and resets the run of a task in each state in which a
// task waits (D1). The task ends once, with its money right, and nothing is submitted twice.
func TestRunsMeddledWith(t *testing.T) {
	t.Parallel()
	m := &runWorld{world: newWorld(t, options{shape: production})}
	c := m.dial()
	t.Cleanup(c.Close)
	m.slow()
	tasks := map[string]map[string]*task{}
	for name, s := range waitStates {
		tasks[name] = map[string]*task{}
		for _, how := range []string{terminated, cancelled, reset} {
			task := s.begin(m)
			switch {
			case how == cancelled:
				if task.wantStatus, task.minJobs = "cancelled", 0; s.unsent {
					task.maxJobs = 0
				}
			case s.end == "either":
				task.wantStatus, task.minJobs = s.end, 0
			}
			tasks[name][how] = task
			t.Logf("%s, is %s: %s", name, how, task.id)
		}
	}
	// Each task has a goroutine of its own: it may leave its state while another run is acted on.
	var group sync.WaitGroup
	for name, s := range waitStates {
		group.Go(func() {
			var actions sync.WaitGroup
			for how, task := range tasks[name] {
				actions.Go(func() {
					err := until(t.Context(), recoverTime, func() error { return s.begun(m, task) })
					if err == nil {
						err = m.tryActOnRun(c, task.id, how)
					}
					if err != nil {
						t.Errorf("%s, %s: %v", name, how, err)
					}
				})
			}
			actions.Wait()
			if s.after != nil {
				if err := s.after(m, tasks[name]); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	group.Wait()
	ends := m.awaitEnds(recoverTime)
	m.actOnRun(c, tasks["waiting for its vendor"][terminated].id, reset) // although the task has ended
	m.checkEnds(ends)
	m.checkJobs(ends)
	m.checkMoney(ends)
	m.checkHooks(ends)
	m.checkWorkflows()
	m.checkNothingLeft()
	m.checkObjects(nil, false)
}

// verifyActionWhilePending performs an action on a run before anything was sent: after the worker
// died with its intent stored, and for a cancel and a termination also before the intent.
func verifyActionWhilePending(t *testing.T, how string) {
	t.Helper()
	w := newWorld(t, options{shape: production, failpoint: failpoint.IntentStored})
	c := w.dial()
	t.Cleanup(c.Close)
	task := w.submit(job{model: alpha})
	w.victim().awaitKilled(t, crashLimit)
	w.actOnRun(c, task.id, how)
	task.wantStatus = endAfter(how)
	if how == cancelled {
		task.minJobs, task.maxJobs = 0, 0
	}
	if how != reset { // a run that has not begun cannot be reset
		early := w.submit(job{model: alpha})
		w.awaitRun(c, early.id)
		w.actOnRun(c, early.id, how)
		if early.wantStatus = endAfter(how); how == cancelled {
			early.minJobs, early.maxJobs = 0, 0
		}
	}
	w.victim().start(t)
	limit := recoverTime
	if how == terminated { // neither sender nor run is left, so the step's lease must end first
		limit += stepLease
	}
	w.verify(limit)
}

// awaitRun waits until Temporal has the run.
func (w *world) awaitRun(c client.Client, workflowID string) {
	w.t.Helper()
	eventually(w.t, 30*time.Second, workflowID+" runs", func() error {
		_, err := c.DescribeWorkflowExecution(w.t.Context(), workflowID, "")
		return err
	})
}

// actionScenarios returns the scenarios for each action.
func actionScenarios() map[string]func(*testing.T) {
	all := map[string]func(*testing.T){}
	for _, how := range []string{terminated, cancelled, reset} {
		all[fmt.Sprintf("run %s while pending", how)] = func(t *testing.T) { t.Helper(); verifyActionWhilePending(t, how) }
	}
	return all
}
