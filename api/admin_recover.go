package api

import (
	"strings"
	"time"

	"github.com/mediagate/mediagate"
)

const (
	// recoverBatch is how many tasks one call tells that they may lack attempts.
	recoverBatch = 200
	// recoverPage is how many tasks one call lists.
	recoverPage = 500
	// maxRecoverPage is more than Temporal says of where its next page begins.
	maxRecoverPage = 4096
	// recoverMargin is how long before the time of the backup runs may have begun whose rows
	// are missing: the clocks of Temporal and the database differ.
	recoverMargin = 10 * time.Minute
	// recoverTime is for the search of all tasks for those that are open.
	recoverTime = 2 * time.Minute
)

// What there is to decide.
const (
	doubtedTask = "task"        // it may lack attempts: nothing is sent for it
	rowMissing  = "row_missing" // a run without a task
)

// Where the next page begins. The parts come in this order.
const (
	pageMark  = "mark"
	pageTasks = "tasks:"
	pageRuns  = "runs:"
)

// recoverView is a page of what a person has to decide.
type recoverView struct {
	Object     string        `json:"object"`
	RestoredTo int64         `json:"restored_to"`
	NotedAt    int64         `json:"noted_at"` // when it was first said
	Marked     int           `json:"marked"`   // tasks, by this call
	Data       []doubtedView `json:"data"`
	HasMore    bool          `json:"has_more"`
	Next       *string       `json:"next"` // the after of the next call
}

type doubtedView struct {
	Kind    string  `json:"kind"`
	ID      string  `json:"id"`
	Account *string `json:"account"`
	Key     *string `json:"key"`
	Model   *string `json:"model"`
	Hold    string  `json:"hold"`
	State   string  `json:"state"` // of the task, or of the run
	Reason  *string `json:"reason"`
	At      int64   `json:"at"` // of the submit, or of the run's start
}

// handleRecover tells the tasks of a restored database that they may lack attempts, and
// then lists, page by page, what a person has to decide: tasks of which nothing is sent
// until their job is found, and runs whose tasks are lost. It may be repeated (D17).
func (s *Server) handleRecover(c *call) error {
	f, err := s.fieldsOf(c, settingsFields)
	if err != nil {
		return err
	}
	to := f.moment("restored_to")
	if !f.has("restored_to") {
		f.fail("restored_to", "restored_to is required")
	}
	after, ok := f.body["after"].(string)
	if f.has("after") && (!ok || len(after) > maxRecoverPage) {
		f.fail("after", "after must be the next of the answer before")
	}
	part, rest, _ := strings.Cut(after, ":")
	if part += ":"; part != pageTasks && part != pageRuns && after != "" && after != pageMark {
		f.fail("after", "after must be the next of the answer before")
	}
	if f.err != nil {
		return f.err
	}
	c.within(recoverTime)
	v := recoverView{Object: "list", RestoredTo: to.Unix(), Data: []doubtedView{}}
	notedAt, err := s.cfg.Store.NoteRestore(c.ctx, to)
	if err != nil {
		return err
	}
	v.NotedAt = notedAt.Unix()
	switch part {
	case pageTasks:
		err = s.doubtedTasks(c, &v, rest)
	case pageRuns:
		err = s.runsWithoutTask(c, &v, to, rest)
	default:
		v.Marked, err = s.cfg.Store.MarkRestored(c.ctx, notedAt, recoverBatch)
		v.continueAt(pageMark)
		if err == nil && v.Marked < recoverBatch {
			s.log.InfoContext(c.ctx, "tasks of a backup may lack attempts: none is sent again by itself", "restored_to", to)
			err = s.doubtedTasks(c, &v, "")
		}
	}
	if err != nil {
		return err
	}
	return c.ok(v)
}

func (v *recoverView) continueAt(next string) { v.HasMore, v.Next = true, &next }

func (s *Server) doubtedTasks(c *call, v *recoverView, after string) error {
	tasks, more, err := s.cfg.Store.DoubtedTasks(c.ctx, after, recoverPage)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		v.Data = append(v.Data, viewDoubted(doubtedTask, t))
	}
	if more {
		v.continueAt(pageTasks + tasks[len(tasks)-1].TaskID)
	} else {
		v.continueAt(pageRuns)
	}
	return nil
}

func (s *Server) runsWithoutTask(c *call, v *recoverView, to time.Time, page string) error {
	runs, next, err := s.cfg.Runs.RunsSince(c.ctx, to.Add(-recoverMargin), page)
	if err != nil {
		return err
	}
	ids := make([]string, len(runs))
	byID := make(map[string]mediagate.Doubted, len(runs))
	for i, r := range runs {
		ids[i], byID[r.TaskID] = r.TaskID, r
	}
	unknown, err := s.cfg.Store.Unknown(c.ctx, ids)
	if err != nil {
		return err
	}
	for _, id := range unknown {
		if run, ok := byID[id]; ok { // of several runs one counts
			v.Data = append(v.Data, viewDoubted(rowMissing, run))
			delete(byID, id)
		}
	}
	if next != "" {
		v.continueAt(pageRuns + next)
	}
	return nil
}

func viewDoubted(kind string, d mediagate.Doubted) doubtedView {
	return doubtedView{
		Kind: kind, ID: d.TaskID, Account: orNull(d.AccountID), Key: orNull(d.KeyID), Model: orNull(d.Model), Hold: d.Hold.String(), State: d.State,
		Reason: orNull(string(d.Reason)), At: d.At.Unix(),
	}
}
