package api

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/view"
)

const taskPrefix = "task_"

// errTaskID is the one answer to malformed, unknown and foreign ids: who
// guesses learns nothing.
var errTaskID = &mediagate.Error{Kind: mediagate.KindInvalid, Message: "invalid task id", Param: "task_id"}

// pathTask reads the task that the path names.
func (s *Server) pathTask(c *call) (mediagate.Task, error) {
	id := c.Param("task_id")
	if !looksLike(id, taskPrefix) {
		return mediagate.Task{}, errTaskID
	}
	c.taskID = id
	return s.readTask(c, id)
}

func (s *Server) readTask(c *call, id string) (mediagate.Task, error) {
	t, err := s.cfg.Store.Task(c.ctx, c.caller.key.AccountID, id)
	return t, maskTask(err)
}

func maskTask(err error) error {
	if mediagate.Is(err, mediagate.KindNotFound) {
		return errTaskID
	}
	return err
}

func (s *Server) handleTask(c *call) error {
	var language string
	var wait int
	if c.Request().URL.RawQuery != "" {
		q := c.query()
		var err error
		if language, err = oneOfQuery(q, "language", view.Languages()...); err != nil {
			return err
		}
		if wait, err = intQuery(q, "wait", 1, int(c.route.time/time.Second), 0); err != nil {
			return err
		}
	}
	t, err := s.pathTask(c)
	if err != nil {
		return err
	}
	if wait > 0 && !t.Status.Terminal() {
		if t, err = s.awaitEnd(c, t, time.Duration(wait)*time.Second); err != nil {
			return err
		}
	}
	return s.answerTask(c, http.StatusOK, &t, language)
}

// handleMusicTask shows a task in the words of the music endpoint, which knows
// no others.
func (s *Server) handleMusicTask(c *call) error {
	t, err := s.pathTask(c)
	if err != nil {
		return err
	}
	if t.Type != mediagate.TypeMusic {
		return errTaskID
	}
	v, err := s.view(c.ctx, &t)
	if err != nil {
		return err
	}
	return c.linked(http.StatusOK, wrappedMusicTask{http.StatusOK, v.Music()})
}

func (s *Server) answerTask(c *call, status int, t *mediagate.Task, language string) error {
	v, err := s.view(c.ctx, t)
	if err != nil {
		return err
	}
	return c.linked(status, wrappedTask{status, v.In(language)})
}

// waits are what Limits.Waits bounds, for messages: long polls and streams.
const waits = "those that wait for tasks"

// awaitEnd returns the task when it has ended, when the time is up, or when
// the server stops, as it is stored then, if the key may still read it.
func (s *Server) awaitEnd(c *call, t mediagate.Task, most time.Duration) (mediagate.Task, error) {
	lease, err := c.take(s.cfg.Limits.Waits, 1, waits)
	if err != nil {
		return mediagate.Task{}, err
	}
	defer lease.Release()
	ctx, cancel := c.lasting(most)
	defer cancel()
	for {
		changed := s.watch.wait(ctx, t.ID, t.Version)
		c.within(s.cfg.StoreTimeout)
		if err := s.again(c.ctx, c); err != nil {
			return mediagate.Task{}, err
		}
		fresh, err := s.readTask(c, t.ID)
		if err != nil || !changed || fresh.Status.Terminal() {
			return fresh, err
		}
		t = fresh
	}
}

// taskList is a page of tasks.
type taskList struct {
	Object  string      `json:"object"`
	Data    []view.Task `json:"data"`
	FirstID *string     `json:"first_id"`
	LastID  *string     `json:"last_id"`
	HasMore bool        `json:"has_more"`
}

func (s *Server) handleTasks(c *call) error {
	filter, none, err := readFilter(c)
	if err != nil {
		return err
	}
	ctx := c.ctx
	var tasks []mediagate.Task
	var more bool
	if none {
		// after is judged all the same: an empty page must not hide a wrong id.
		if filter.After != "" {
			_, err = s.cfg.Store.Task(ctx, filter.AccountID, filter.After)
		}
	} else {
		tasks, more, err = s.cfg.Store.Tasks(ctx, filter)
	}
	if err != nil {
		return maskAfter(err)
	}
	page := taskList{Object: "list", Data: make([]view.Task, 0, len(tasks)), HasMore: more}
	for i := range tasks {
		v, err := s.view(ctx, &tasks[i])
		if err != nil {
			return err
		}
		page.Data = append(page.Data, v)
	}
	if len(tasks) > 0 {
		page.FirstID, page.LastID = &tasks[0].ID, &tasks[len(tasks)-1].ID
	}
	return c.linked(http.StatusOK, page)
}

var errAfter = mediagate.Invalid("after", "after must be the id of a task in the list")

func maskAfter(err error) error {
	if mediagate.Is(err, mediagate.KindNotFound) {
		return errAfter
	}
	return err
}

// readFilter reads the list's query. none is set when a filter holds what no
// stored row can hold, so that nothing can match.
func readFilter(c *call) (f mediagate.TaskFilter, none bool, err error) {
	q := c.query()
	if f, none, err = filterOf(q); err != nil {
		return f, false, err
	}
	f.AccountID = c.caller.key.AccountID
	return f, none, readPage(q, &f)
}

// readPage reads which page of a list of tasks is asked for.
func readPage(q url.Values, f *mediagate.TaskFilter) (err error) {
	if f.Limit, err = intQuery(q, "limit", 1, maxLimit, defaultLimit); err != nil {
		return err
	}
	if f.After = q.Get("after"); f.After != "" && !looksLike(f.After, taskPrefix) {
		return errAfter
	}
	return nil
}

// filterOf reads the filters that clients and operators share.
func filterOf(q url.Values) (f mediagate.TaskFilter, none bool, err error) {
	f = mediagate.TaskFilter{Model: q.Get("model"), Reference: q.Get("reference")}
	status, err := oneOfQuery(q, "status", words(mediagate.Statuses())...)
	if err != nil {
		return f, false, err
	}
	kind, err := oneOfQuery(q, "type", words(mediagate.TaskTypes())...)
	if err != nil {
		return f, false, err
	}
	f.Status, f.Type = mediagate.Status(status), mediagate.Type(kind)
	if f.CreatedAfter, err = timeQuery(q, "created_after"); err != nil {
		return f, false, err
	}
	if f.CreatedBefore, err = timeQuery(q, "created_before"); err != nil {
		return f, false, err
	}
	// The zero time is no filter to the store, and nothing is older.
	none = f.CreatedBefore.IsZero() && q.Get("created_before") != ""
	return f, none || !storable(f.Model) || !storable(f.Reference), nil
}

// operatorFilters are the names that operatorFilter reads.
var operatorFilters = []string{"status", "model", "type", "reference", "created_after", "created_before", "account", "channel", "stuck", "webhook"}

// operatorFilter reads the filters of an operator, of lists and of commands for many
// tasks alike. An account that is not known is an error: a wrong id must not hide
// what is there.
func (s *Server) operatorFilter(ctx context.Context, q url.Values) (f mediagate.TaskFilter, none bool, err error) {
	if f, none, err = filterOf(q); err != nil {
		return f, false, err
	}
	if f.AccountID, err = s.accountIn(ctx, q); err != nil {
		return f, false, err
	}
	stuck, err := oneOfQuery(q, "stuck", yesNo...)
	if err != nil {
		return f, false, err
	}
	webhook, err := oneOfQuery(q, "webhook", words(mediagate.WebhookStates())...)
	f.Channel, f.Stuck, f.Webhook = q.Get("channel"), stuck == yes, mediagate.WebhookState(webhook)
	return f, none || !storable(f.Channel), err
}

// storable reports whether the database can hold the text.
func storable(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// handleCancel stores the request first and signals the task's run second.
func (s *Server) handleCancel(c *call) error {
	id := c.Param("task_id")
	if !looksLike(id, taskPrefix) {
		return errTaskID
	}
	c.taskID = id
	t, err := s.cfg.Store.RequestCancel(c.ctx, c.caller.key.AccountID, id)
	if err != nil {
		return maskTask(err)
	}
	s.wake(c)
	return s.answerAccepted(c, &t)
}

// answerAccepted shows the task that something was noted for, as far as the key may
// read it.
func (s *Server) answerAccepted(c *call, t *mediagate.Task) error {
	if !slices.Contains(c.caller.key.Scopes, mediagate.ScopeRead) {
		return c.linked(http.StatusAccepted, wrappedStub{http.StatusAccepted, taskStub{t.ID, t.Status}})
	}
	return s.answerTask(c, http.StatusAccepted, t, "")
}

func (s *Server) handleLegacyPoll(c *call) error {
	t, err := s.pathTask(c)
	if err != nil {
		return err
	}
	links, err := s.links(c.ctx, &t)
	if err != nil {
		return err
	}
	return c.linked(http.StatusOK, view.LegacyOf(&t, links))
}

// wakeDeadline bounds how long a client waits for the signal about what is stored.
const wakeDeadline = 2 * time.Second

// wake signals the run of the call's task. It outlives a client that leaves. Its
// failure is only logged: the task's wake is due all the same.
func (s *Server) wake(c *call) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request().Context()), wakeDeadline)
	defer cancel()
	if _, err := s.cfg.Starter.Wake(ctx, c.taskID); err != nil {
		s.log.WarnContext(ctx, "workflow not signalled: its wake is due in seconds",
			"task", c.taskID, "request", c.requestID, "error", err)
	}
}
