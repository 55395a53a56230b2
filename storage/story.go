package storage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/task/story"
)

// Outlook reads the part of a task's story that lists show: what the task waits for. It locks nothing.
// Returns KindNotFound.
func (s *Store) Outlook(ctx context.Context, id string) (story.Story, error) {
	state, lease, err := s.loadState(s.on(ctx), id, "", nil, false)
	if err != nil {
		return story.Story{}, dbError(err, "read what the task waits for")
	}
	return story.Story{State: state, Lease: lease, At: s.clock()}, nil
}

// storyRows is how many of a task's newest commands and callback attempts are read.
//
// A client may ask for any number of callback rounds, so the number is bounded.
const storyRows = 200

// Story reads everything that is stored of a task, for operators. It also reads erased tasks, and the
// readable parts of a task that cannot be read as a whole. Returns KindNotFound.
func (s *Store) Story(ctx context.Context, id string) (story.Story, error) {
	db := s.on(ctx)
	var rows []struct{ N int }
	if err := read(db, &rows, "SELECT n FROM attempts WHERE task_id = ?", id); err != nil {
		return story.Story{}, dbError(err, "read attempts")
	}
	// loadState reads only the last attempt by itself; a story has all of them.
	numbers := convert(rows, func(r struct{ N int }) int { return r.N })
	state, lease, err := s.loadState(db, id, "", numbers, false)
	if err != nil {
		return story.Story{}, dbError(err, "read the task's state")
	}
	if err := s.noteSourceStates(db, &state.Task); err != nil {
		return story.Story{}, dbError(err, "read sources")
	}
	st := story.Story{State: state, Lease: lease, At: s.clock()}
	if err := read(db, &st.Commands, `SELECT id, task_id, '', action, channel, by_whom, reason, at FROM actions
		WHERE task_id = ? ORDER BY at DESC, id DESC LIMIT ?`, id, storyRows); err != nil {
		return story.Story{}, dbError(err, "read commands")
	}
	// The newest were read, and are shown oldest first.
	slices.Reverse(st.Commands)
	if st.Deliveries, err = s.Deliveries(ctx, id); err != nil {
		return story.Story{}, err
	}
	st.Ledger, _, err = s.Ledger(ctx, state.AccountID, id, "", 2) // a hold and its end
	return st, err
}

// NotePromptRead records in the audit that the context's actor reads a client's prompt.
func (s *Store) NotePromptRead(ctx context.Context, accountID, taskID string) error {
	return dbError(s.note(ctx, s.on(ctx), deed{
		action:  mediagate.AuditReadPrompt,
		object:  taskID,
		account: accountID,
		after:   map[string]bool{"prompt": true},
	}), "note who reads a prompt")
}

// insertAction stores a command. It returns false if a command with its id is stored already.
//
// The primary key is the command's id, so a repeated command is stored once.
func insertAction(tx *gorm.DB, a mediagate.Action) (bool, error) {
	inserted, err := exec(tx, `INSERT INTO actions (id, task_id, action, channel, by_whom, reason, at)
		VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		a.ID, a.TaskID, a.Action, a.Channel, a.By, a.Reason, at(a.At))
	return inserted > 0, err
}

// Command applies the events of an operator's command as Change does, and records the command in the
// same transaction. A command without an id gets one. A command whose id is recorded already changes
// nothing; Command then returns the present state. Returns KindConflict for a command that does not
// apply, which is not recorded. Returns KindNotFound for an unknown task, or for a task of another
// account where the command names an account.
func (s *Store) Command(ctx context.Context, a mediagate.Action, events ...task.Event) (task.Changed, error) {
	if a.ID == "" {
		a.ID = s.newID("act_")
	}
	a.At = cmp.Or(a.At, s.clock())
	// once runs under the lock of the task's row. If an event is refused afterwards, the rollback
	// removes the row and the audit's entry too.
	once := func(tx *gorm.DB, t mediagate.Task) (bool, error) {
		first, err := insertAction(tx, a)
		if err != nil || !first {
			return false, err
		}
		return true, s.note(ctx, tx, deed{
			action:  mediagate.AuditTaskAction,
			object:  a.TaskID,
			account: t.AccountID,
			after:   actionFacts{a.ID, a.Action, a.Channel, a.Reason},
		})
	}
	return s.change(ctx, a.TaskID, &changing{owner: a.AccountID, events: events, first: once})
}

// noteStrays records in the task's story the jobs that belong to no attempt. It records none for an
// erased task.
//
// A stray job is one that a vendor reports but no attempt of the row has made (D5). The id of the
// action contains the channel and the job, so a repeated report adds nothing.
func noteStrays(tx *gorm.DB, t mediagate.Task, strays []task.Stray, now time.Time) error {
	if !t.ErasedAt.IsZero() {
		return nil
	}
	for _, s := range strays {
		if _, err := insertAction(tx, mediagate.Action{
			ID:      "act_" + t.ID + "/stray/" + s.Sending.Channel + "/" + s.Ref.JobID,
			TaskID:  t.ID,
			Action:  mediagate.ActionStray,
			Channel: s.Sending.Channel,
			By:      "mediagate",
			Reason: fmt.Sprintf("%s has the job %s, made as %s for attempt %d: "+
				"no attempt has that job, and the vendor is asked to stop it",
				s.Sending.Channel, s.Ref.JobID, s.Sending.ExternalID, s.Sending.N),
			At: now,
		}); err != nil {
			return err
		}
	}
	return nil
}

// actionFacts are what the audit records of a command.
type actionFacts struct {
	ID      string `json:"id"`
	Action  string `json:"action"`
	Channel string `json:"channel,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// NoteTaskJob records in the audit that the context's actor begins a job. It is called before the job
// begins, so that no job acts without a record of who began it.
func (s *Store) NoteTaskJob(ctx context.Context, job mediagate.TaskJob) error {
	return dbError(s.note(ctx, s.on(ctx), deed{
		action:  mediagate.AuditTaskJob,
		object:  job.ID,
		account: job.Filter.AccountID,
		after:   job,
	}), "note a job")
}
