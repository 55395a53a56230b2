package api

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/internal/failpoint"
	"github.com/mediagate/mediagate/task/view"
)

const taskPrefix = "task_"

// errTaskID is the one answer to malformed ids, unknown ids and ids of other accounts' tasks, so that
// guessing reveals nothing.
var errTaskID = &mediagate.Error{Kind: mediagate.KindInvalid, Message: "invalid task id", Param: "task_id"}

// pathTaskID returns the task id in the path, and adds it to the log line.
func pathTaskID(c *call, unknown *mediagate.Error) (id string, err error) {
	id, err = pathID(c, "task_id", taskPrefix, unknown)
	c.taskID = id
	return id, err
}

// pathTask reads the task in the path.
func (s *Server) pathTask(c *call) (mediagate.Task, error) {
	id, err := pathTaskID(c, errTaskID)
	if err != nil {
		return mediagate.Task{}, err
	}
	return s.readTask(c, id)
}

func (s *Server) readTask(c *call, id string) (mediagate.Task, error) {
	t, err := s.cfg.Store.Task(c.ctx, c.caller.key.AccountID, id)
	return t, notFoundAs(err, errTaskID)
}

func (s *Server) handleTask(c *call) error {
	var language, request string
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
		if request, err = oneOfQuery(q, "request", yesNo...); err != nil {
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
	var body map[string]any
	if request == yes {
		if body, err = view.Request(&t); err != nil {
			return err
		}
	}
	return s.answerRead(c, &t, language+" "+request, func(links []mediagate.Link) any {
		v := s.viewWith(&t, links)
		if v.Request = body; body != nil {
			v.Endpoint = t.Endpoint
		}
		return wrappedTask{http.StatusOK, v.In(language)}
	})
}

// handleMusicTask shows a music task in the form of the music endpoint. A task of another type gets
// the same answer as an unknown task.
func (s *Server) handleMusicTask(c *call) error {
	t, err := s.pathTask(c)
	if err != nil {
		return err
	}
	if t.Type != mediagate.TypeMusic {
		return errTaskID
	}
	return s.answerRead(c, &t, "", func(links []mediagate.Link) any {
		return wrappedMusicTask{http.StatusOK, view.Of(&t, s.cfg.CreditsPerUnit, links).Music()}
	})
}

// answerTask answers a call that made a task, or acts on one, with the task.
func (s *Server) answerTask(c *call, status int, t *mediagate.Task) error {
	v, err := s.view(c.ctx, t)
	if err != nil {
		return err
	}
	return c.linked(status, wrappedTask{status, v})
}

// waits names what Limits.Waits bounds, for messages: long polls and streams.
const waits = "waiting requests"

// awaitEnd waits until the task ends, the time is up, or the server stops. It then returns the
// stored task, if the key may still read it.
func (s *Server) awaitEnd(c *call, t mediagate.Task, most time.Duration) (mediagate.Task, error) {
	lease, err := c.tryAcquire(s.cfg.Limits.Waits, 1, waits)
	if err != nil {
		return mediagate.Task{}, err
	}
	defer lease.Release()
	ctx, cancel := c.detachedContext(most)
	defer cancel()
	if c.Request().Context().Value(inProcess{}) != nil {
		defer context.AfterFunc(c.Request().Context(), cancel)()
	}
	for {
		changed := s.watch.wait(ctx, t.ID, t.Version)
		c.setTimeout(s.cfg.StoreTimeout)
		if err := s.reauthorize(c.ctx, c); err != nil {
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
type taskList[V any] struct {
	Object  string  `json:"object"`
	Data    []V     `json:"data"`
	FirstID *string `json:"first_id"`
	LastID  *string `json:"last_id"`
	HasMore bool    `json:"has_more"`
}

// listTasks renders a page of tasks.
func listTasks[V any](tasks []mediagate.Task, more bool, view func(t *mediagate.Task) (V, error)) (taskList[V], error) {
	page := taskList[V]{Object: "list", Data: make([]V, 0, len(tasks)), HasMore: more}
	for i := range tasks {
		v, err := view(&tasks[i])
		if err != nil {
			return page, err
		}
		page.Data = append(page.Data, v)
	}
	if len(tasks) > 0 {
		page.FirstID, page.LastID = &tasks[0].ID, &tasks[len(tasks)-1].ID
	}
	return page, nil
}

func (s *Server) handleTasks(c *call) error {
	filter, none, err := readFilter(c)
	if err != nil {
		return err
	}
	prompts, err := oneOfQuery(c.query(), "prompt", yesNo...)
	if err != nil {
		return err
	}
	ctx := c.ctx
	var tasks []mediagate.Task
	var more bool
	if none {
		// after is checked even so: an empty page must not hide a wrong id.
		if filter.After != "" {
			_, err = s.cfg.Store.Task(ctx, filter.AccountID, filter.After)
		}
	} else {
		tasks, more, err = s.cfg.Store.Tasks(ctx, filter)
	}
	if err != nil {
		return notFoundAs(err, errAfter)
	}
	page, err := listTasks(tasks, more, func(t *mediagate.Task) (view.Task, error) {
		v, err := s.view(ctx, t)
		if prompts == yes {
			v.Prompt, v.Endpoint, v.Action = view.Prompt(t), t.Endpoint, t.Plan.Action
		}
		return v, err
	})
	if err != nil {
		return err
	}
	return c.linked(http.StatusOK, page)
}

var errAfter = mediagate.Invalid("after", "after must be the id of a task in the list")

// readFilter reads the query of the list. It sets none if a filter has a value that no row can
// have, so that nothing can match.
func readFilter(c *call) (f mediagate.TaskFilter, none bool, err error) {
	q := c.query()
	if f, none, err = filterOf(q); err != nil {
		return f, false, err
	}
	f.AccountID, f.KeyID = c.caller.key.AccountID, q.Get("key")
	if f.KeyID != "" && !isID(f.KeyID, keyIDPrefix) {
		return f, false, mediagate.Invalid("key", "key must be the id of a key")
	}
	return f, none, readPage(q, &f)
}

// readPage reads limit and after of a list of tasks.
func readPage(q url.Values, f *mediagate.TaskFilter) (err error) {
	if f.Limit, err = intQuery(q, "limit", 1, maxLimit, defaultLimit); err != nil {
		return err
	}
	if f.After = q.Get("after"); f.After != "" && !isID(f.After, taskPrefix) {
		return errAfter
	}
	return nil
}

// filterOf reads the filters that clients and operators share.
func filterOf(q url.Values) (f mediagate.TaskFilter, none bool, err error) {
	f = mediagate.TaskFilter{Model: q.Get("model"), Reference: q.Get("reference"), Source: q.Get("source")}
	if f.Source != "" && !isID(f.Source, taskPrefix) {
		return f, false, mediagate.Invalid("source", "source must be the id of a task")
	}
	status, err := oneOfQuery(q, "status", words(mediagate.Statuses())...)
	if err != nil {
		return f, false, err
	}
	kind, err := oneOfQuery(q, "type", words(mediagate.TaskTypes())...)
	if err != nil {
		return f, false, err
	}
	webhook, err := oneOfQuery(q, "webhook", words(mediagate.WebhookStates())...)
	if err != nil {
		return f, false, err
	}
	f.Status, f.Type, f.Webhook = mediagate.Status(status), mediagate.Type(kind), mediagate.WebhookState(webhook)
	if f.CreatedAfter, err = timeQuery(q, "created_after"); err != nil {
		return f, false, err
	}
	if f.CreatedBefore, err = timeQuery(q, "created_before"); err != nil {
		return f, false, err
	}
	// No task was created before the zero time, but to the store the zero time would mean no filter.
	none = f.CreatedBefore.IsZero() && q.Get("created_before") != ""
	return f, none || !storable(f.Model) || !storable(f.Reference), nil
}

// operatorFilters are the names that operatorFilter reads.
var operatorFilters = []string{
	"status", "model", "type", "reference", "source", "created_after", "created_before", "account", "channel", "stuck",
	"webhook", "q",
}

// operatorFilter reads an operator's filters, for lists and for commands to many tasks. An
// unknown account is an error: a wrong id must not look like an empty list.
func (s *Server) operatorFilter(ctx context.Context, q url.Values) (f mediagate.TaskFilter, none bool, err error) {
	if f, none, err = filterOf(q); err != nil {
		return f, false, err
	}
	if f.AccountID, err = s.queryAccount(ctx, q); err != nil {
		return f, false, err
	}
	stuck, err := oneOfQuery(q, "stuck", yesNo...)
	if err != nil {
		return f, false, err
	}
	f.Channel, f.Stuck = q.Get("channel"), stuck == yes
	if f.Search, err = textQuery(q, "q"); err != nil {
		return f, false, err
	}
	return f, none || !storable(f.Channel), nil
}

// storable reports whether the database can store the text.
func storable(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// handleCancel stores the request to cancel, then signals the task's run.
func (s *Server) handleCancel(c *call) error {
	id, err := pathTaskID(c, errTaskID)
	if err != nil {
		return err
	}
	t, err := s.cfg.Store.RequestCancel(c.ctx, c.caller.key.AccountID, id)
	if err != nil {
		return notFoundAs(err, errTaskID)
	}
	s.wake(c)
	return s.answerAccepted(c, &t)
}

// answerAccepted answers a call that acts on a task with the task, or with its id and status
// alone if the key may not read it.
func (s *Server) answerAccepted(c *call, t *mediagate.Task) error {
	if !slices.Contains(c.caller.key.Scopes, mediagate.ScopeRead) {
		return c.linked(http.StatusAccepted, wrappedStub{http.StatusAccepted, taskStub{t.ID, t.Status}})
	}
	return s.answerTask(c, http.StatusAccepted, t)
}

func (s *Server) handleLegacyPoll(c *call) error {
	t, err := s.pathTask(c)
	if err != nil {
		return err
	}
	return s.answerRead(c, &t, "", func(links []mediagate.Link) any { return view.LegacyOf(&t, links) })
}

// wakeDeadline bounds how long a client waits for the signal about a stored change.
const wakeDeadline = 2 * time.Second

// wake signals the run of the call's task, even if the client leaves. It only logs a failure,
// since the task's wake is due anyway.
func (s *Server) wake(c *call) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request().Context()), wakeDeadline)
	defer cancel()
	if _, err := s.cfg.Starter.Wake(ctx, c.taskID); err != nil {
		s.log.WarnContext(ctx, "workflow not signalled: its wake is due in seconds",
			"task", c.taskID, "request", c.requestID, "error", err)
	}
}

// handleArt shows a task in the form of the art endpoint. Malformed and unknown ids, tasks of other
// accounts, and tasks that are not art get the same answer.
func (s *Server) handleArt(c *call) error {
	t, err := s.pathTask(c)
	switch {
	case mediagate.Is(err, mediagate.KindInvalid), err == nil && t.Type != mediagate.TypeArt:
		return errTask
	case err != nil:
		return err
	}
	return s.answerRead(c, &t, "", func(links []mediagate.Link) any {
		return view.ArtOf(&t, s.cfg.CreditsPerUnit, links)
	})
}

// handleModal accepts the parameters that a task in MODAL waits for. It works like a submit,
// except that it makes no task and charges nothing.
func (s *Server) handleModal(c *call) error {
	sub, replayed, err := s.readSubmit(c, s.readSubmitRequest)
	if mediagate.Is(err, mediagate.KindConflict) { // an equal call may have given the task these parameters meanwhile
		replayed, err = s.replayedTask(c, sub, err)
	}
	if err != nil {
		return err
	}
	if replayed != "" {
		noteTask(c, replayed, true)
		return s.acknowledge(c)
	}
	c.bodyPermit.Release()
	if err := s.reauthorize(c.ctx, c); err != nil {
		return err
	}
	taskID := sub.validated.Source.Task
	isReplay, err := s.cfg.Store.SubmitModal(c.ctx, mediagate.ModalCall{
		AccountID: c.caller.key.AccountID, TaskID: taskID, Input: sub.validated.Params,
		IdempotencyKey: sub.key, Path: sub.path, BodySHA256: sub.digest,
	})
	if err != nil {
		return err
	}
	noteTask(c, taskID, isReplay)
	if !isReplay {
		failpoint.Hit(failpoint.ModalCommitted)
		s.wake(c)
	}
	return s.acknowledge(c)
}

// actionInpaint is the action whose modal parameters must include a mask.
const actionInpaint = "INPAINT"

// modalParams checks modal parameters against their task, and returns them with the task's speed:
// the task paid for that speed, and the modal call itself costs nothing.
func (s *Server) modalParams(c *call, r catalog.Request) (json.RawMessage, error) {
	task, err := s.accountTask(c, r.Source, r.Source.Task)
	if err != nil {
		return nil, err
	}
	if err := mayResume(&task, r); err != nil {
		return nil, err
	}
	var given, paid map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(r.Params, &given), json.Unmarshal(task.Params, &paid)); err != nil {
		return nil, mediagate.Errorf(mediagate.KindInternal, "the accepted parameters are no object: %w", err)
	}
	const speed = "speed"
	if paid[speed] != nil {
		given[speed] = paid[speed]
	}
	params, err := json.Marshal(given)
	if err != nil {
		return nil, mediagate.Errorf(mediagate.KindInternal, "the modal parameters cannot be written: %w", err)
	}
	return params, nil
}

// mayResume returns an error unless the task accepts these modal parameters.
func mayResume(task *mediagate.Task, r catalog.Request) error {
	var given struct {
		Prompt string `json:"prompt"`
		Mask   string `json:"mask_url"`
	}
	if err := json.Unmarshal(r.Params, &given); err != nil {
		return mediagate.Errorf(mediagate.KindInternal, "the accepted parameters are no object: %w", err)
	}
	switch {
	case given.Mask == "" && task.Plan.Action == actionInpaint:
		return mediagate.Invalid("mask_url", "mask_url is required: the task inpaints")
	case given.Mask == "" && strings.TrimSpace(given.Prompt) == "":
		return mediagate.Invalid("prompt", "prompt or mask_url is required")
	case task.Status.Terminal() || !task.CancelRequestedAt.IsZero() || task.Modal.State != mediagate.ModalWaiting:
		return mediagate.Errorf(mediagate.KindConflict, "the task does not wait for modal parameters")
	}
	return nil
}

// view returns the public view of a task, with fresh links.
func (s *Server) view(ctx context.Context, t *mediagate.Task) (view.Task, error) {
	links, err := s.links(ctx, t)
	if err != nil {
		return view.Task{}, err
	}
	return s.viewWith(t, links), nil
}

// viewWith returns the task as its account sees it, with the given links.
func (s *Server) viewWith(t *mediagate.Task, links []mediagate.Link) view.Task {
	v := view.Of(t, s.cfg.CreditsPerUnit, links)
	v.Key = t.KeyID
	return v
}

// links signs the links to the task's files, in their order.
func (s *Server) links(ctx context.Context, t *mediagate.Task) ([]mediagate.Link, error) {
	links, err := s.linker().Of(ctx, t)
	if err != nil {
		return nil, errSigning(err)
	}
	return links, nil
}

func (s *Server) linker() view.Links {
	return view.Links{Sign: s.cfg.Signer.Sign, TTL: s.cfg.LinkTTL, Keep: s.cfg.Keep, Now: s.now}
}

func errSigning(err error) error {
	return &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "signing a link", Err: err}
}

var errNoResult = &mediagate.Error{
	Kind: mediagate.KindNotFound, Message: "the task has no such file, has none yet, or no longer keeps it",
}

// handleResultFile redirects to a file of a task by a fresh link, or streams the file itself, as
// long as the file is kept.
func (s *Server) handleResultFile(c *call) error {
	t, err := s.pathTask(c)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(c.Param("n"))
	file, ok := t.File(n)
	if err != nil || !ok || strconv.Itoa(n) != c.Param("n") {
		return errNoResult
	}
	return s.answerFile(c, &t, file, plainName(c.query().Get("download")))
}

// answerFile answers with a file of the task: with a link for the call's method, or with the
// bytes if the query says stream=true.
func (s *Server) answerFile(c *call, t *mediagate.Task, file mediagate.Result, name string) error {
	stream, err := oneOfQuery(c.query(), "stream", yesNo...)
	if err != nil {
		return err
	}
	life := s.linker().Life(t)
	if file.Key == "" || life < time.Second {
		return errNoResult
	}
	if stream == yes {
		return s.streamFile(c, file, name)
	}
	link, err := s.cfg.Signer.SignAs(c.ctx, file, life, c.Request().Method, name)
	if err != nil {
		return errSigning(err)
	}
	header := c.Response().Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Location", link.URL)
	return c.NoContent(http.StatusFound)
}

// streamFile streams a file of a task, for clients that cannot follow a redirect to the bucket:
// S3 refuses a signed link that comes with an Authorization header.
func (s *Server) streamFile(c *call, file mediagate.Result, name string) error {
	size, err := s.cfg.Files.Size(c.ctx, file.Key)
	if mediagate.Is(err, mediagate.KindGone) {
		return errNoResult
	}
	if err != nil {
		return err
	}
	c.streams = true
	header := c.Response().Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Type", file.MimeType)
	header.Set("Etag", `"`+file.SHA256+`"`)
	if name != "" {
		header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	}
	return s.serveObject(c, file.Key, size, time.Time{})
}

// linked answers with a body that has links in it, or may have them once the task has ended.
func (c *call) linked(status int, body any) error {
	header := c.Response().Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	return c.json(status, body)
}

// removeTime bounds how long an erasure waits for the bucket.
const removeTime = 5 * time.Second

// handleErasure erases a task in the database, and then removes the task's files. The database
// decides whether the task may be erased. If the bucket does not remove the files now, the workers
// do it later: the row marks the files as due for a sweep.
func (s *Server) handleErasure(c *call) error {
	id, err := pathTaskID(c, errTaskID)
	if err != nil {
		return err
	}
	if err := s.erase(c, id); err != nil {
		return notFoundAs(err, errTaskID)
	}
	return c.NoContent(http.StatusNoContent)
}

func (s *Server) erase(c *call, id string) error {
	c.taskID = id
	uploads, err := s.cfg.Store.EraseTask(c.ctx, c.caller.key.AccountID, id)
	if err != nil {
		return err
	}
	failpoint.Hit(failpoint.TaskErased)
	s.removeFiles(c, id, uploads)
	return nil
}

// removeFiles removes the files of an erased task, even if the client leaves.
func (s *Server) removeFiles(c *call, id string, uploads []string) {
	ctx, cancel := c.detachedContext(c.route.time)
	defer cancel()
	if err := s.cfg.Remover.Remove(ctx, mediagate.ResultFolder(id), uploads...); err != nil {
		s.log.WarnContext(
			ctx, "files of an erased task not removed yet, the workers will", "task", id, "request", c.requestID, "error", err,
		)
	}
}
