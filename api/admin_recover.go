package api

import (
	"strings"
	"time"

	"github.com/mediagate/mediagate"
)

const (
	// recoverBatch is how many tasks one call marks.
	recoverBatch = 200
	// recoverPage is how many tasks one call lists.
	recoverPage = 500
	// maxRecoverPage bounds the length of a page token. Temporal's tokens are shorter.
	maxRecoverPage = 4096
	// recoverMargin is subtracted from the time of the backup to get the start of the search for
	// runs without a row. It allows for a difference between the clocks of Temporal and the
	// database.
	recoverMargin = 10 * time.Minute
	// recoverTime bounds a call, which may search all tasks for open ones.
	recoverTime = 2 * time.Minute
)

// The kinds of cases that an operator has to decide.
const (
	uncertainTask = "task"        // its row may lack attempts, so nothing is sent for it
	rowMissing    = "row_missing" // a run whose task has no row
)

// The beginnings of page tokens. A client first has the tasks marked (pageMark), then pages through
// the marked tasks (pageTasks), and then through the runs without a task (pageRuns).
const (
	pageMark  = "mark"
	pageTasks = "tasks:"
	pageRuns  = "runs:"
)

// recoverView is a page of the cases that an operator has to decide.
type recoverView struct {
	Object     string          `json:"object"`
	RestoredTo int64           `json:"restored_to"`
	NotedAt    int64           `json:"noted_at"` // when the first call was made
	Marked     int             `json:"marked"`   // tasks that this call marked
	Data       []uncertainView `json:"data"`
	HasMore    bool            `json:"has_more"`
	Next       *string         `json:"next"` // the field after of the next call; null on the last page
}

type uncertainView struct {
	Kind    string  `json:"kind"`
	ID      string  `json:"id"`
	Account *string `json:"account"`
	Key     *string `json:"key"`
	Model   *string `json:"model"`
	Hold    string  `json:"hold"`
	State   string  `json:"state"` // status of the task, or state of the run
	Reason  *string `json:"reason"`
	At      int64   `json:"at"` // time of the submit, or of the run's start
}

// handleRecover marks the open tasks of a restored database, since their rows may lack attempts. It
// then lists, page by page, the cases that an operator has to decide: tasks for which nothing is
// sent until their job is found, and runs whose task has no row. The call may be repeated (D17).
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
		f.fail("after", "after must be the next of the previous answer")
	}
	part, rest, _ := strings.Cut(after, ":")
	if part += ":"; part != pageTasks && part != pageRuns && after != "" && after != pageMark {
		f.fail("after", "after must be the next of the previous answer")
	}
	if f.err != nil {
		return f.err
	}
	c.takeLong(recoverTime)
	v := recoverView{Object: "list", RestoredTo: to.Unix(), Data: []uncertainView{}}
	notedAt, err := s.cfg.Store.NoteRestore(c.ctx, to)
	if err != nil {
		return err
	}
	v.NotedAt = notedAt.Unix()
	switch part {
	case pageTasks:
		err = s.uncertainTasks(c, &v, rest)
	case pageRuns:
		err = s.runsWithoutTask(c, &v, to, rest)
	default:
		v.Marked, err = s.cfg.Store.MarkRestored(c.ctx, notedAt, recoverBatch)
		v.continueAt(pageMark)
		if err == nil && v.Marked < recoverBatch {
			s.log.InfoContext(c.ctx, "tasks of a backup may lack attempts: none is sent again by itself", "restored_to", to)
			err = s.uncertainTasks(c, &v, "")
		}
	}
	if err != nil {
		return err
	}
	return c.ok(v)
}

func (v *recoverView) continueAt(next string) { v.HasMore, v.Next = true, &next }

func (s *Server) uncertainTasks(c *call, v *recoverView, after string) error {
	tasks, more, err := s.cfg.Store.UncertainTasks(c.ctx, after, recoverPage)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		v.Data = append(v.Data, viewUncertain(uncertainTask, t))
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
	byID := make(map[string]mediagate.UncertainTask, len(runs))
	for i, r := range runs {
		ids[i], byID[r.TaskID] = r.TaskID, r
	}
	unknown, err := s.cfg.Store.Unknown(c.ctx, ids)
	if err != nil {
		return err
	}
	for _, id := range unknown {
		if run, ok := byID[id]; ok { // a task may have several runs
			v.Data = append(v.Data, viewUncertain(rowMissing, run))
			delete(byID, id)
		}
	}
	if next != "" {
		v.continueAt(pageRuns + next)
	}
	return nil
}

func viewUncertain(kind string, d mediagate.UncertainTask) uncertainView {
	return uncertainView{
		Kind:    kind,
		ID:      d.TaskID,
		Account: orNull(d.AccountID),
		Key:     orNull(d.KeyID),
		Model:   orNull(d.Model),
		Hold:    d.Hold.String(),
		State:   d.State,
		Reason:  orNull(string(d.Reason)),
		At:      d.At.Unix(),
	}
}
