package storage

import (
	"context"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// storyRow is what a workflow knows of its task.
type storyRow struct {
	storyTask
	storyAttempt
	Mirrored bool
	Unheard  bool
	Owed     bool
	Queued   bool // for an attempt that is not there: workers of before the queue left it in its place
	Granted  bool
}

type storyTask struct {
	Status            mediagate.Status
	Model             string
	Type              mediagate.Type
	Plan              document
	CancelRequestedAt stamp
	DeadlineAt        stamp
	ParkedAt          stamp
	ParkReason        mediagate.ParkReason
	QueuedAt          stamp
	WebhookRound      int
	WebhookState      mediagate.WebhookState
	Judgement         document
	ArtState          mediagate.ModalState
	ModalUntil        stamp
}

// storyAttempt is of the newest attempt; all of it is NULL when there is none.
type storyAttempt struct {
	N          *int
	State      *mediagate.AttemptState
	Channel    *string
	Provider   *string
	Route      document
	SendBefore stamp
	AbsentAt   stamp
	Outcome    document
	Failure    document
	Error      *string
	Trouble    *mediagate.ParkReason
}

// Story reads what the task's workflow decides by: the row and its newest
// attempt. A row that is gone is a story too: Missing.
func (s *Store) Story(ctx context.Context, taskID string) (mediagate.Story, error) {
	story, err := s.readStory(s.on(ctx), taskID)
	return story, dbError(err, "read story")
}

func (s *Store) readStory(db *gorm.DB, taskID string) (mediagate.Story, error) {
	r, err := one[storyRow](db, "SELECT "+columnsOf[storyTask]().of("t")+", "+columnsOf[storyAttempt]().of("a")+`,
			a.results IS NOT NULL AS mirrored,
			COALESCE(w.unheard, false) AS unheard, COALESCE(w.owed, false) AS owed,
			t.queued_at IS NOT NULL AND EXISTS (SELECT 1 FROM queue q WHERE q.task_id = t.id AND q.n > COALESCE(a.n, 0)) AS queued,
			t.queued_at IS NOT NULL AND EXISTS (SELECT 1 FROM queue q WHERE q.task_id = t.id AND q.n > COALESCE(a.n, 0)
				AND q.granted_at IS NOT NULL) AS granted
		FROM tasks t LEFT JOIN attempts a ON a.task_id = t.id AND a.n = (SELECT MAX(n) FROM attempts WHERE task_id = t.id)
			LEFT JOIN awaits w ON w.task_id = a.task_id AND w.n = a.n
		WHERE t.id = ?`, taskID)
	if err != nil {
		return mediagate.Story{}, err
	}
	if r == nil {
		return mediagate.Story{Missing: true}, nil
	}
	story := mediagate.Story{
		ReadAt: s.clock(), Status: r.Status, Model: r.Model, Type: r.Type,
		CancelRequested: !r.CancelRequestedAt.IsZero(), DeadlineAt: r.DeadlineAt.Time,
		ParkedAt: r.ParkedAt.Time, ParkReason: r.ParkReason, Granted: r.Granted,
		WebhookRound: r.WebhookRound, WebhookState: r.WebhookState,
	}
	switch r.ArtState {
	case mediagate.ModalWaiting:
		story.ModalUntil = r.ModalUntil.Time
	case mediagate.ModalExpired:
		story.ModalExpired = true
	case mediagate.ModalNone, mediagate.ModalSubmitted: // which the attempts tell
	}
	if r.Queued {
		story.QueuedAt = r.QueuedAt.Time
		if story.QueuedFor, err = s.queuedFor(db, taskID); err != nil {
			return mediagate.Story{}, err
		}
	}
	var plan mediagate.Plan
	if err := fromJSON("tasks.plan", r.Plan, &plan); err != nil {
		return mediagate.Story{}, err
	}
	story.Expected, story.OnUnknown = plan.Expected, plan.OnUnknown
	if r.N == nil {
		return story, judged(&story, plan, r.Judgement)
	}
	story.N, story.State, story.Channel, story.Provider, story.Trouble = *r.N, *r.State, *r.Channel, *r.Provider, *r.Trouble
	story.SendBefore, story.AbsentAt, story.Mirrored, story.Unanswered = r.SendBefore.Time, r.AbsentAt.Time, r.Mirrored, r.Unheard
	story.Outstanding = r.Owed
	story.SenderLost = story.State == mediagate.AttemptUnknown && *r.Error == mediagate.SenderLost
	var route mediagate.Route
	if err := fromJSON("attempts.route", r.Route, &route); err != nil {
		return mediagate.Story{}, err
	}
	story.Sync, story.CanFind = route.Sync, route.Find
	var outcome *mediagate.Outcome
	if err := fromJSON("attempts.outcome", r.Outcome, &outcome); err != nil {
		return mediagate.Story{}, err
	}
	if outcome == nil {
		return story, fromJSON("attempts.failure", r.Failure, &story.Failure)
	}
	story.Succeeded, story.Failure = outcome.Succeeded, outcome.Failure
	return story, nil
}

// judged tells how far the inputs of a task without an attempt are judged.
func judged(story *mediagate.Story, plan mediagate.Plan, text document) error {
	if len(plan.Inputs) == 0 {
		return nil
	}
	var j mediagate.Judgement
	err := fromJSON("tasks.judgement", text, &j)
	story.JudgeInputs, story.Failure = !j.Over, j.Failure
	return err
}
