package api

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/task/story"
	"github.com/mediagate/mediagate/task/view"
)

var errTask = &mediagate.Error{Kind: mediagate.KindNotFound, Message: "task not found", Param: "task_id"}

// operatorTask is a task of a list as operators see it.
type operatorTask struct {
	view.Task
	Account  string     `json:"account"`
	Name     string     `json:"account_name"`
	Channel  *string    `json:"channel"`   // of the last attempt
	WaitsFor *waitView  `json:"waits_for"` // null after the task's end
	Stuck    *stuckView `json:"stuck"`
	ErasedAt *int64     `json:"erased_at,omitempty"`
}

// taskPage is a page of an operators' list. If the query asks for totals, Total counts the tasks
// on all pages, and Reasons counts the stuck ones by reason.
type taskPage struct {
	adminList[operatorTask]
	Total   *int           `json:"total,omitempty"`
	Reasons map[string]int `json:"reasons,omitempty"`
}

// waitView says what a task does or waits for, until when, what happens then if no operator acts,
// and which commands apply now. Kind names the step or the wait in one word. Channels lists the
// channels that the task is queued for, or else the channel of its last attempt. Sources lists the
// tasks whose end the task waits for.
type waitView struct {
	Kind     string   `json:"kind"`
	Step     string   `json:"step"`
	Until    *int64   `json:"until"`
	Then     string   `json:"then"`
	Actions  []string `json:"actions"`
	Channels []string `json:"channels"`
	Sources  []string `json:"sources,omitempty"`
}

// stuckView says why a task is stuck. Drained lists the task's channels that an operator has
// disabled, if the task is stuck for want of a channel.
type stuckView struct {
	Reason  string   `json:"reason"`
	Drained []string `json:"drained,omitempty"`
	Since   *int64   `json:"since"`
	Until   *int64   `json:"until"`
	Actions []string `json:"actions"`
}

// taskStory is all that operators see of a task.
type taskStory struct {
	operatorTask
	Actions    []string          `json:"actions"`              // the commands that apply now
	Unreadable bool              `json:"unreadable,omitempty"` // a column cannot be decoded and is left out
	Attempts   []attemptView     `json:"attempts"`
	Ledger     []transferView    `json:"ledger"`
	Deliveries []deliveryAttempt `json:"deliveries"`
	Events     []lineView        `json:"events"`
	Workflow   workflowView      `json:"workflow"`
}

type attemptView struct {
	N           int                    `json:"n"`
	Channel     string                 `json:"channel"`
	Provider    string                 `json:"provider"`
	VendorJobID *string                `json:"vendor_job_id"`
	ExternalID  string                 `json:"external_id"`
	State       mediagate.AttemptState `json:"state"`
	Error       *string                `json:"error"` // our code and the vendor's words
	Started     int64                  `json:"started"`
	Accepted    *int64                 `json:"accepted"`
	Ended       *int64                 `json:"ended"` // null while its job has a slot
}

type lineView struct {
	At     int64  `json:"at"`
	What   string `json:"what"`
	Detail string `json:"detail"`
}

type workflowView struct {
	ID    string  `json:"id"`
	RunID *string `json:"run_id"` // null without a run, or if Temporal does not answer
	URL   *string `json:"url"`    // null without temporal.ui_url
}

// viewOperatorTask shows a task without the titles, lyrics and tags of its songs, which may repeat
// what the client wrote.
func (s *Server) viewOperatorTask(
	ctx context.Context, t *mediagate.Task, st *story.Story, label mediagate.TaskLabel,
) (operatorTask, error) {
	shown, err := s.view(ctx, t)
	if err != nil {
		return operatorTask{}, err
	}
	shown = shown.WithoutWords()
	v := operatorTask{
		Task: shown, Account: t.AccountID, Name: label.AccountName, Channel: orNull(label.Channel),
		ErasedAt: unixOrNull(t.ErasedAt),
	}
	if t.Status.Terminal() {
		return v, nil
	}
	e, until, then := st.Waits()
	channels := e.QueuedFor
	if len(channels) == 0 && e.N > 0 {
		channels = []string{e.Channel}
	}
	v.WaitsFor = &waitView{e.Word(), e.Doing(), unixOrNull(until), then, noNull(e.Actions), noNull(channels), e.WaitsFor}
	if stuck := st.Stuck(); stuck != nil {
		v.Stuck = &stuckView{
			Reason: stuck.Reason, Since: unixOrNull(stuck.Since), Until: unixOrNull(stuck.Until), Actions: noNull(stuck.Actions),
		}
		if stuck.Reason == string(mediagate.ParkProviderAway) {
			if v.Stuck.Drained, err = s.drainedFor(ctx, t); err != nil {
				return operatorTask{}, err
			}
		}
	}
	return v, nil
}

// drainedFor names the task's channels that an operator has disabled.
func (s *Server) drainedFor(ctx context.Context, t *mediagate.Task) (names []string, err error) {
	states, err := s.cfg.Store.ChannelStates(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range s.cfg.Channels {
		disabled := slices.ContainsFunc(
			states, func(state mediagate.ChannelState) bool { return state.Name == c.Name && !state.Enabled },
		)
		if disabled && c.servesTask(t) {
			names = append(names, c.Name)
		}
	}
	return names, nil
}

func noNull(list []string) []string { return append([]string{}, list...) }

func viewStoryLine(l story.Line) lineView { return lineView{l.At.Unix(), l.What, l.Detail} }

func viewAttempt(a task.Attempt) attemptView {
	v := attemptView{
		N: a.N, Channel: a.Channel, Provider: a.Provider, VendorJobID: orNull(a.Ref.JobID), ExternalID: a.ExternalID,
		State: a.State,
		Error: orNull(story.Words(&a)), Started: a.CreatedAt.Unix(),
		Accepted: unixOrNull(a.AcceptedAt), Ended: unixOrNull(a.EndedAt),
	}
	return v
}

// viewStory shows a task as lists do: with the channel of its last attempt and the name of its
// account.
func (s *Server) viewStory(ctx context.Context, st *story.Story) (operatorTask, error) {
	labels, err := s.cfg.Store.Labels(ctx, st.State.ID)
	if err != nil {
		return operatorTask{}, err
	}
	return s.viewOperatorTask(ctx, &st.State.Task, st, labels[st.State.ID])
}

// handleAdminTasks lists tasks of all accounts. It counts them only on request, since that may
// take long.
func (s *Server) handleAdminTasks(c *call) error {
	q := c.query()
	f, none, err := s.operatorFilter(c.ctx, q)
	if err != nil {
		return err
	}
	total, err := oneOfQuery(q, "total", yesNo...)
	if err != nil {
		return err
	}
	page := taskPage{}
	if total == yes {
		c.takeLong(checkTime)
		if err := s.countAll(c.ctx, f, none, &page); err != nil {
			return err
		}
	}
	if err := readPage(q, &f); err != nil {
		return err
	}
	var tasks []mediagate.Task
	var more bool
	if !none {
		if tasks, more, err = s.cfg.Store.Tasks(c.ctx, f); err != nil {
			return notFoundAs(err, errAfter)
		}
	}
	ids := make([]string, len(tasks))
	for i := range tasks {
		ids[i] = tasks[i].ID
	}
	labels, err := s.cfg.Store.Labels(c.ctx, ids...)
	if err != nil {
		return err
	}
	page.adminList = adminList[operatorTask]{Object: "list", Data: make([]operatorTask, 0, len(tasks)), HasMore: more}
	for i := range tasks {
		var st story.Story
		if !tasks[i].Status.Terminal() {
			st, err = s.cfg.Store.Outlook(c.ctx, tasks[i].ID)
			if mediagate.Is(err, mediagate.KindNotFound) { // it has ended since, and was removed
				continue
			}
			if err != nil {
				return err
			}
		}
		v, err := s.viewOperatorTask(c.ctx, &tasks[i], &st, labels[tasks[i].ID])
		if err != nil {
			return err
		}
		page.Data = append(page.Data, v)
	}
	return c.linked(http.StatusOK, page)
}

// countAll counts the tasks that a filter selects, on all pages. If none is true, no task can
// match the filter.
func (s *Server) countAll(ctx context.Context, f mediagate.TaskFilter, none bool, page *taskPage) (err error) {
	page.Total = new(int)
	switch {
	case none:
		return nil
	case !f.Stuck:
		*page.Total, err = s.cfg.Store.CountTasks(ctx, f)
		return err
	}
	if page.Reasons, err = s.cfg.Store.StuckCounts(ctx, f); err != nil {
		return err
	}
	for _, n := range page.Reasons {
		*page.Total += n
	}
	return nil
}

// pathStory reads the story of the task in the path.
func (s *Server) pathStory(c *call) (story.Story, error) {
	id, err := pathTaskID(c, errTask)
	if err != nil {
		return story.Story{}, err
	}
	st, err := s.cfg.Store.Story(c.ctx, id)
	return st, notFoundAs(err, errTask)
}

// handleAdminTask answers with the story of a task. It shows the client's prompt only on request,
// after noting the request in the audit.
func (s *Server) handleAdminTask(c *call) error {
	prompt, err := oneOfQuery(c.query(), "prompt", yesNo...)
	if err != nil {
		return err
	}
	if prompt == yes {
		if err := c.mustHave(mediagate.RoleOperate); err != nil {
			return err
		}
	}
	st, err := s.pathStory(c)
	if err != nil {
		return err
	}
	t := &st.State.Task
	shown, err := s.viewStory(c.ctx, &st)
	if err != nil {
		return err
	}
	v := taskStory{
		operatorTask: shown, Actions: noNull(st.State.Actions(st.At)), Unreadable: st.State.Unreadable,
		Attempts: listOf(st.State.Attempts, false, viewAttempt).Data, Ledger: listOf(st.Ledger, false, viewTransfer).Data,
		Deliveries: listOf(st.Deliveries, false, viewDelivery).Data,
		Events:     listOf(st.Lines(), false, viewStoryLine).Data,
	}
	if prompt == yes {
		c.setActor(c.asActor())
		if err := s.cfg.Store.NotePromptRead(c.ctx, t.AccountID, t.ID); err != nil {
			return err
		}
		if v.Request, err = view.Request(t); err != nil {
			return err
		}
	}
	v.Workflow = s.workflowOf(c, t.ID)
	return c.linked(http.StatusOK, v)
}

// describeTime bounds how long a story waits for Temporal.
const describeTime = 2 * time.Second

func (s *Server) workflowOf(c *call, id string) workflowView {
	ctx, cancel := context.WithTimeout(c.ctx, describeTime)
	defer cancel()
	run, page, err := s.cfg.Starter.Run(ctx, id)
	if err != nil {
		s.log.WarnContext(
			ctx, "Temporal does not describe the run of a task", "task", id, "request", c.requestID, "error", err,
		)
	}
	return workflowView{id, orNull(run), orNull(page)}
}

// actionView is a recorded command, and the task after it.
type actionView struct {
	ID      string       `json:"id"`
	Action  string       `json:"action"`
	Channel *string      `json:"channel"`
	Reason  string       `json:"reason"`
	Task    operatorTask `json:"task"`
}

var actionFields = fieldMaskOf("action", "channel", "reason")

// operatorActions are the commands that operators give.
var operatorActions = []string{
	mediagate.ActionRetry, mediagate.ActionReroute, mediagate.ActionFail, mediagate.ActionPollNow,
	mediagate.ActionRedeliver,
}

// readAction reads a command and its reason.
func readAction(f *fields) mediagate.Action {
	a := mediagate.Action{Action: f.required("action"), Channel: f.text("channel"), Reason: f.required("reason")}
	if f.err == nil && !slices.Contains(operatorActions, a.Action) {
		f.fail("action", "action must be one of %s", strings.Join(operatorActions, ", "))
	}
	if f.err == nil && a.Channel != "" && a.Action != mediagate.ActionReroute {
		f.fail("channel", "channel is allowed only with the action reroute")
	}
	return a
}

// handleAdminAction records a command for a task, applies it, and signals the task's run. If the
// signal is lost, the wake scan wakes the run, since the command has made the task's wake due.
func (s *Server) handleAdminAction(c *call) error {
	if _, err := pathID(c, "task_id", taskPrefix, errTask); err != nil {
		return err
	}
	_, a, err := readFields(s, c, actionFields, readAction)
	if err != nil {
		return err
	}
	st, err := s.pathStory(c)
	if err != nil {
		return err
	}
	if err := s.checkChannel(c.ctx, a.Channel, &st.State.Task); err != nil {
		return err
	}
	a.ID, a.TaskID, a.By = s.newID("act_"), st.State.ID, c.asActor().By
	if err := s.command(c, a); err != nil {
		return notFoundAs(err, errTask)
	}
	if st, err = s.cfg.Store.Story(c.ctx, a.TaskID); err != nil {
		return err
	}
	shown, err := s.viewStory(c.ctx, &st)
	if err != nil {
		return err
	}
	return c.linked(http.StatusAccepted, actionView{a.ID, a.Action, orNull(a.Channel), a.Reason, shown})
}

// command records a command, and signals the run of an open task.
func (s *Server) command(c *call, a mediagate.Action) error {
	changed, err := s.cfg.Store.Command(c.ctx, a, task.CommandOf(a.Action, a.Channel))
	if err == nil && !changed.State.Status.Terminal() {
		s.wake(c)
	}
	return err
}

// checkChannel refuses a channel that cannot take the task's next attempt.
func (s *Server) checkChannel(ctx context.Context, name string, t *mediagate.Task) error {
	if name == "" {
		return nil
	}
	k, err := s.usableChannel(ctx, name)
	switch {
	case err != nil:
		return err
	case !k.servesTask(t):
		return mediagate.Invalid("channel", "channel does not serve %s: %s", t.Model, name)
	default:
		return nil
	}
}
