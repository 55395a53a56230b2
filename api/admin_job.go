package api

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/task/story"
)

const (
	defaultPace = 10  // tasks a second
	maxPace     = 100 // a higher rate would leave clients too little of the database
	// shownTasks is how many task ids a dry run lists, and how many tasks it reads at once.
	shownTasks = 100
	// checkedTasks is how many tasks a dry run checks, to see whether the command applies to them.
	// Each open task takes some queries.
	checkedTasks = 1000
	// previewTime is how long counting the tasks, and checking them in a dry run, may take.
	previewTime = 2 * time.Minute
	jobPrefix   = "job_"
)

// JobStore counts the tasks that the filter of a job selects, and records the job.
type JobStore interface {
	CountTasks(ctx context.Context, f mediagate.TaskFilter) (int, error)
	// SelectTasks lists tasks page by page. The filter's After need not be the id of a task.
	SelectTasks(ctx context.Context, f mediagate.TaskFilter) (tasks []mediagate.Task, hasMore bool, err error)
	NoteTaskJob(ctx context.Context, job mediagate.TaskJob) error
}

// jobView is the answer to a request for a job. Job is null if no task matched, since then no job
// begins.
type jobView struct {
	Matched int     `json:"matched"`
	Job     *string `json:"job"`
}

// dryView is what a job would do. Checked is how many of the tasks that match were checked, the newest
// first. Of these, Applies counts the tasks to which the command applies, and Skipped those that the
// job would skip, by reason. Tasks lists the ids of the newest.
type dryView struct {
	Matched int                     `json:"matched"`
	Checked int                     `json:"checked"`
	Applies int                     `json:"applies"`
	Skipped map[task.SkipReason]int `json:"skipped"`
	Tasks   []string                `json:"tasks"`
}

var jobFields = []string{"filter", "action", "channel", "reason", "dry_run", "per_second"}

// handleTaskActions begins a job that gives a command to all tasks that a filter selects. A dry run
// only counts them. Unknown fields and filters are errors: a mistyped filter must not make the job
// act on more tasks than the operator meant.
func (s *Server) handleTaskActions(c *call) error {
	f, err := s.fieldsOf(c, &catalog.FieldMask{Whole: true})
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(f.body)) {
		if !slices.Contains(jobFields, name) {
			f.fail(
				name, "%s is not a field of this call; its fields are: %s", mediagate.Quote(name), strings.Join(jobFields, ", "),
			)
		}
	}
	a := readAction(f)
	dry, pace := f.flag("dry_run"), f.pace("per_second")
	query := f.filter("filter")
	if f.err != nil {
		return f.err
	}
	filter, none, err := s.operatorFilter(c.ctx, query)
	if err != nil {
		return prefixParam("filter", err)
	}
	if filter == (mediagate.TaskFilter{}) && !none {
		return mediagate.Invalid("filter", `filter must select something; {"created_after": 0} selects all tasks`)
	}
	if now := s.now(); filter.CreatedBefore.IsZero() || now.Before(filter.CreatedBefore) {
		filter.CreatedBefore = now // the operator has not seen later tasks
	}
	var channel knownChannel
	if a.Channel != "" {
		if channel, err = s.usableChannel(c.ctx, a.Channel); err != nil {
			return err
		}
	}
	c.takeLong(previewTime)
	matched := 0
	if !none {
		if matched, err = s.cfg.Store.CountTasks(c.ctx, filter); err != nil {
			return err
		}
	}
	if dry {
		view, err := s.preview(c.ctx, filter, matched, a.Action, channel)
		if err != nil {
			return err
		}
		return c.ok(view)
	}
	if matched == 0 {
		return c.ok(jobView{})
	}
	job := mediagate.TaskJob{
		ID:        s.newID(jobPrefix),
		Filter:    filter,
		Action:    a.Action,
		Channel:   a.Channel,
		Reason:    a.Reason,
		By:        c.asActor().By,
		PerSecond: pace,
		Matched:   matched,
	}
	if err := s.cfg.Store.NoteTaskJob(c.ctx, job); err != nil {
		return err
	}
	if err := s.cfg.Starter.StartJob(c.ctx, job); err != nil {
		return &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "it is not known whether the job has begun", Err: err}
	}
	s.log.InfoContext(c.ctx, "an operator began a job", "job", job.ID, "action", job.Action, "matched", matched)
	return c.json(http.StatusAccepted, jobView{matched, &job.ID})
}

var errJob = &mediagate.Error{Kind: mediagate.KindNotFound, Message: "job not found", Param: "job_id"}

// jobStatusView is the progress of a job. Progress is null if Temporal does not report it.
type jobStatusView struct {
	Job      string                  `json:"job"`
	State    mediagate.TaskJobState  `json:"state"`
	Progress *mediagate.TaskJobCount `json:"progress"`
	Workflow workflowView            `json:"workflow"`
}

// handleJob answers with the state of a job.
func (s *Server) handleJob(c *call) error {
	id, err := pathID(c, "job_id", jobPrefix, errJob)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.ctx, describeTime)
	defer cancel()
	status, run, page, err := s.cfg.Starter.Job(ctx, id)
	switch {
	case mediagate.Is(err, mediagate.KindNotFound):
		return errJob
	case err != nil:
		return &mediagate.Error{
			Kind: mediagate.KindUnavailable, Message: "Temporal does not report the progress of the job", Err: err,
		}
	}
	return c.ok(jobStatusView{id, status.State, status.Count, workflowView{"actions/" + id, orNull(run), orNull(page)}})
}

// preview checks the newest tasks that a filter selects, and counts those to which a command applies
// and those that a job would skip. It changes nothing.
func (s *Server) preview(
	ctx context.Context, f mediagate.TaskFilter, matched int, action string, channel knownChannel,
) (dryView, error) {
	view := dryView{Matched: matched, Skipped: map[task.SkipReason]int{}, Tasks: []string{}}
	f.Limit = shownTasks
	for more := matched > 0; more && view.Checked < checkedTasks; {
		var tasks []mediagate.Task
		var err error
		if tasks, more, err = s.cfg.Store.SelectTasks(ctx, f); err != nil {
			return view, err
		}
		for i := range tasks {
			why, err := s.skipReason(ctx, &tasks[i], action, channel)
			if err != nil {
				return view, err
			}
			if view.Checked++; why == "" {
				view.Applies++
			} else {
				view.Skipped[why]++
			}
			if len(view.Tasks) < shownTasks {
				view.Tasks = append(view.Tasks, tasks[i].ID)
			}
			f.After = tasks[i].ID
		}
	}
	return view, nil
}

// skipReason returns why a job would skip a task, or "" if the command applies to it. The reason of
// an ended task depends on its row alone, so nothing else is read for it.
func (s *Server) skipReason(
	ctx context.Context, t *mediagate.Task, action string, channel knownChannel,
) (task.SkipReason, error) {
	st := story.Story{State: task.State{Task: *t}}
	if !t.Status.Terminal() {
		var err error
		st, err = s.cfg.Store.Outlook(ctx, t.ID)
		switch {
		case mediagate.Is(err, mediagate.KindNotFound): // it has ended since, and was removed
			return task.SkipEnded, nil
		case err != nil:
			return "", err
		}
	}
	why := st.State.SkipReason(action, st.At)
	if why == "" && channel.Name != "" && !channel.servesTask(t) {
		why = task.SkipChannel
	}
	return why, nil
}

// usableChannel returns the channel of that name, if it takes new jobs.
func (s *Server) usableChannel(ctx context.Context, name string) (knownChannel, error) {
	known, err := s.knownChannels(ctx)
	if err != nil {
		return knownChannel{}, err
	}
	at := slices.IndexFunc(known, func(k knownChannel) bool { return k.Name == name && k.configured })
	switch {
	case at < 0:
		return knownChannel{}, mediagate.Invalid("channel", "there is no channel %s", mediagate.Quote(name))
	case !known[at].state.Enabled:
		return knownChannel{}, mediagate.Invalid("channel", "channel is disabled, enable it or name another: %s", name)
	default:
		return known[at], nil
	}
}

// pace reads the rate of a job, in tasks a second.
func (f *fields) pace(name string) int {
	if !f.has(name) {
		return defaultPace
	}
	number, _ := f.body[name].(json.Number)
	n, err := strconv.Atoi(number.String())
	if err != nil || n < 1 || n > maxPace {
		f.fail(name, "%s must be an integer from 1 to %d", name, maxPace)
	}
	return n
}

// filter reads an object whose members are filters of the task list, and returns them as a query.
// An empty value is an error here, since a list treats an empty filter as no filter.
func (f *fields) filter(name string) url.Values {
	object, ok := f.body[name].(map[string]any)
	switch {
	case !f.has(name):
		f.fail(name, "%s is required", name)
	case !ok:
		f.fail(name, "%s must be an object", name)
	}
	query := url.Values{}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		param, text := name+"."+key, ""
		switch v := object[key].(type) {
		case string:
			text = v
		case json.Number:
			text = v.String()
		case bool:
			text = strconv.FormatBool(v)
		}
		switch {
		case !slices.Contains(operatorFilters, key):
			f.fail(param, "%s is not a filter; the filters are: %s", mediagate.Quote(key), strings.Join(operatorFilters, ", "))
		case text == "":
			f.fail(param, "%s must be a string that is not empty, a number, true or false", param)
		}
		query.Set(key, text)
	}
	return query
}

// prefixParam puts the outer field's name before the field that the error names.
func prefixParam(outer string, err error) error {
	e := domainError(err)
	if e.Kind != mediagate.KindInvalid || e.Param == "" {
		return err
	}
	inner := *e
	inner.Param = outer + "." + e.Param
	return &inner
}
