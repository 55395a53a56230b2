package api

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/internal/failpoint"
)

// acknowledgement is the answer to every submit.
type acknowledgement struct {
	Code int             `json:"code"`
	Data []submittedTask `json:"data"`
}

type submittedTask struct {
	Status string `json:"status"`
	TaskID string `json:"task_id"`
}

// order is the body of a submit as it came.
type order struct {
	endpoint   string // that it is for
	body       map[string]any
	size       int
	digest     [sha256.Size]byte // of its bytes, or of what they say
	strict     []string          // the fields that the client wrote, where each must be known
	translate  translation       // nil where it is in our own words
	references []reference       // that came within it
	adoptable  time.Duration     // how long it may wait for its task, if a later one may adopt that; 0 if none may
}

// translation puts a body into the words of the operation. What the client called
// otherwise is in sent, by our field.
type translation func(o *catalog.Operation, body map[string]any) (ours map[string]any, sent map[string]string, err error)

// readOrder reads the body of a submit in our own words.
func (s *Server) readOrder(c *call) (order, error) {
	raw, body, err := s.readBody(c, c.models.outlines[c.Path()])
	if err != nil {
		return order{}, err
	}
	names, err := c.strictNames(raw)
	return order{endpoint: c.Path(), body: body, size: len(raw), digest: sha256.Sum256(raw), strict: names}, err // nothing else is needed of the bytes from here on
}

const strictHeader = "Mediagate-Strict"

// strictNames are the fields of a body, but for those that the call knows itself, where
// header or key ask that each be known; the header decides.
func (c *call) strictNames(raw []byte, own ...string) ([]string, error) {
	strict := c.caller.key.Strict
	switch said := c.Request().Header.Get(strictHeader); {
	case said == "":
	case strings.EqualFold(said, yes):
		strict = true
	case strings.EqualFold(said, "false"):
		strict = false
	default:
		return nil, mediagate.Invalid(strictHeader, "%s must be true or false", strictHeader).Because(mediagate.ReasonNotOneOf)
	}
	if !strict {
		return nil, nil
	}
	return slices.DeleteFunc(namesIn(raw), func(name string) bool { return slices.Contains(own, name) }), nil
}

// submit is one that may be taken in.
type submit struct {
	validated  validated
	key        string // its idempotency key; empty for none
	path       string
	digest     [sha256.Size]byte
	references []reference
}

// readSubmit reads a submit and checks it, step by step in the order of the contract. If
// the client repeats an earlier submit, replayed is the id of that one's task, and the rest
// of the checks is left out.
func (s *Server) readSubmit(c *call, read func(*call) (order, error)) (sub submit, replayed string, err error) {
	o, err := read(c)
	if err != nil {
		return submit{}, "", err
	}
	sub.path, sub.digest, sub.references = c.Request().URL.Path, o.digest, o.references
	if sub.key, err = readIdempotencyKey(c.Request().Header); err != nil {
		return submit{}, "", err
	}
	if replayed, err = s.before(c, sub, nil); err != nil {
		return submit{}, "", err
	}
	if wait := c.adoptable(o); wait > 0 {
		adopted, err := s.adopt(c, sub, wait, replayed)
		if err != nil || adopted != "" {
			return submit{}, adopted, err
		}
	}
	if replayed != "" {
		return submit{}, replayed, nil
	}
	if o.endpoint != catalog.ModalEndpoint { // which goes on with a task that runs
		if err := c.caller.mayBegin(); err != nil {
			return submit{}, "", err
		}
	}
	if sub.validated, err = s.validate(c, o); err != nil {
		return sub, "", err // by its key a modal call looks for its twin
	}
	return sub, "", s.moderate(c, sub.validated)
}

// before is the task of a submit with the same idempotency key, if it has one, that
// came before. Without such a task the refusal stands, if there is any.
func (s *Server) before(c *call, sub submit, refusal error) (taskID string, err error) {
	if sub.key == "" {
		return "", refusal
	}
	taskID, found, err := s.cfg.Store.Replay(c.ctx, c.caller.key.AccountID, sub.key, sub.path, sub.digest)
	if err == nil && !found {
		err = refusal
	}
	return taskID, err
}

// handleSubmit takes a task in.
func (s *Server) handleSubmit(c *call) error {
	if _, _, err := s.takeIn(c, s.readOrder); err != nil {
		return err
	}
	return s.acknowledge(c)
}

// takeIn makes the task that a submit asks for, or finds the one that it made before, of
// which it knows the id alone.
func (s *Server) takeIn(c *call, read func(*call) (order, error)) (t mediagate.Task, replayed bool, err error) {
	traced := s.traceSubmit(c)
	defer func() {
		if err == nil && t.ID != "" { // not after a panic
			submitted(c, t.ID, replayed)
		}
		traced(err)
	}()
	sub, before, err := s.readSubmit(c, read)
	if err != nil || before != "" {
		return mediagate.Task{ID: before}, true, err
	}
	if err = s.storePictures(c, &sub.validated); err == nil {
		err = s.storeReferences(c, &sub)
	}
	if err != nil {
		before, err = s.before(c, sub, err) // its twin may have taken the money since
		return mediagate.Task{ID: before}, true, err
	}
	c.held.Release() // what follows needs nothing of the body
	if err := s.again(c.ctx, c); err != nil {
		return t, false, err
	}
	task, made := s.newTask(c, sub.validated), time.Now()
	c.mayHaveTask = sub.key == ""
	id, replayed, err := s.cfg.Store.Submit(c.ctx, mediagate.NewTask{
		Task: task, IdempotencyKey: sub.key, Path: sub.path, BodySHA256: sub.digest, Group: sub.validated.group, Capacity: sub.validated.capacity,
		Waiter: c.waiter,
	})
	if mediagate.Is(err, mediagate.KindNotFound) && sub.validated.Source != nil { // erased since it was looked at
		err = unusable(sub.validated.Source, "is unknown")
	}
	if mediagate.Is(err, mediagate.KindInvalid) { // of a source, which has ended since
		err = asSent(err, sub.validated.Folded)
	}
	if err != nil || replayed { // its twin, at work at this moment, has the workflow started
		return mediagate.Task{ID: id}, replayed, err
	}
	if c.waiter != nil {
		s.watchClient(c)
	}
	failpoint.Hit(failpoint.SubmitCommitted)
	s.starts.add(task, made)
	return task, false, nil
}

// submitted notes the task of a submit in the header of its answer.
func submitted(c *call, taskID string, replayed bool) {
	c.taskID = taskID
	if replayed {
		c.Response().Header().Set(replayedHeader, "true")
	}
	c.Response().Header().Set("Location", "/v1/tasks/"+taskID)
}

// acknowledge answers a submit: with its task, where the client prefers to wait for the
// end and that comes in time.
func (s *Server) acknowledge(c *call) error {
	if wait := preferredWait(c.Request().Header); wait > 0 {
		if t, err := s.outcome(c, wait); err == nil {
			c.waited(wait)
			if t.Status.Terminal() {
				return s.answerTask(c, http.StatusOK, &t)
			}
		}
	}
	return c.linked(http.StatusOK, acknowledgement{http.StatusOK, []submittedTask{{"submitted", c.taskID}}})
}

// outcome waits for the end of the call's task, and returns it as it is then. Whoever
// waits holds nothing that others need to submit.
func (s *Server) outcome(c *call, most time.Duration) (mediagate.Task, error) {
	if err := c.needs(mediagate.ScopeRead); err != nil {
		return mediagate.Task{}, err
	}
	c.place.Release()
	c.answerWithin(most)
	c.within(s.cfg.StoreTimeout)
	t, err := s.readTask(c, c.taskID)
	if err != nil || t.Status.Terminal() || most == 0 {
		return t, err
	}
	return s.awaitEnd(c, t, most)
}

// preference reads one of the preferences in Prefer (RFC 7240). The first one counts.
func preference(h http.Header, wanted string) (value string, found bool) {
	for preference := range strings.SplitSeq(strings.Join(h.Values("Prefer"), ","), ",") {
		preference, _, _ = strings.Cut(preference, ";")
		name, value, _ := strings.Cut(preference, "=")
		if strings.EqualFold(strings.TrimSpace(name), wanted) {
			return strings.Trim(strings.TrimSpace(value), `"`), true
		}
	}
	return "", false
}

// preferredWait reads Prefer: wait=N in whole seconds. A wait without a number, or above
// 60 s, is 60 s; 0 where there is none, or none that can be read.
func preferredWait(h http.Header) time.Duration {
	value, found := preference(h, "wait")
	seconds, err := strconv.ParseUint(value, 10, 32)
	switch {
	case found && value == "", errors.Is(err, strconv.ErrRange):
		return longestWait
	case err != nil:
		return 0
	default:
		return min(time.Duration(seconds)*time.Second, longestWait)
	}
}

// waited says in the answer how long the call was ready to wait for its task.
func (c *call) waited(most time.Duration) {
	c.Response().Header().Add(appliedHeader, fmt.Sprintf("wait=%d", seconds(most)))
}

// appliedHeader names the preferences that the answer follows (RFC 7240).
const appliedHeader = "Preference-Applied"

// How a submit is repeated.
const (
	idempotencyHeader = "Idempotency-Key"
	replayedHeader    = "Idempotency-Replayed"
	shouldRetryHeader = "X-Should-Retry" // OpenAI's clients repeat 408, 409, 429 and 5xx, unless it is false
	maxIdempotencyKey = 255
	idempotencyTTL    = 24 * time.Hour // at least, see the store
)

// readIdempotencyKey returns "" when the client sent none. A header that is
// there must hold a usable key: ignoring it could charge a client twice.
func readIdempotencyKey(h http.Header) (string, error) {
	values := h.Values(idempotencyHeader)
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	fine := len(values) == 1 && len(key) >= 1 && len(key) <= maxIdempotencyKey
	for i := range len(key) {
		fine = fine && key[i] >= ' ' && key[i] <= '~'
	}
	if !fine {
		return "", mediagate.Invalid(idempotencyHeader, "Idempotency-Key must be 1 to 255 printable ASCII characters")
	}
	return key, nil
}

// newTask makes the row of an order. The times are what the database can
// hold. The time in the id is that of its creation: lists go by it.
func (s *Server) newTask(c *call, o validated) mediagate.Task {
	now := s.now().UTC().Truncate(time.Microsecond)
	plan := o.Plan
	if plan.Timeout <= 0 || plan.Timeout > s.cfg.TaskTimeout {
		plan.Timeout = s.cfg.TaskTimeout
	}
	plan.ParkTimeout, plan.ParkRetry, plan.QueueTimeout = s.cfg.ParkTimeout, s.cfg.ParkRetry, s.cfg.QueueTimeout
	if o.kind == mediagate.TypeArt {
		plan.Modal = s.cfg.ModalTimeout
	}
	return mediagate.Task{
		ID: s.newIDAt(taskPrefix, now), AccountID: c.caller.key.AccountID, KeyID: c.caller.key.ID,
		Model: o.model, Type: o.kind, Status: mediagate.StatusPending, Version: 1,
		Params: o.Params, Endpoint: o.endpoint, Reference: o.Reference, RequestID: c.requestID, TraceParent: c.traceParent,
		Plan: plan, Sources: o.sources, Charges: o.Charges, Hold: o.hold(),
		CreatedAt: now, DeadlineAt: now.Add(plan.Timeout),
		Webhook: s.webhookOf(cmp.Or(o.Webhook, c.caller.account.Webhook)),
	}
}

// maxWebhookURL bounds what is kept of an address, usable ones are shorter.
const maxWebhookURL = 2048

// webhookOf is the callback that a submit asks for. An address that nothing
// may be sent to is kept, so that an operator can see it.
func (s *Server) webhookOf(address string) mediagate.Webhook {
	if address == "" {
		return mediagate.Webhook{}
	}
	err := s.cfg.CheckWebhookURL(address)
	if err == nil {
		return mediagate.Webhook{URL: address, State: mediagate.WebhookPending}
	}
	if len(address) > maxWebhookURL {
		cut := maxWebhookURL
		for !utf8.RuneStart(address[cut]) {
			cut--
		}
		address = address[:cut]
	}
	return mediagate.Webhook{URL: address, State: mediagate.WebhookDropped, Reason: reasonOf(err)}
}

func reasonOf(err error) string {
	if e := domainError(err); e.Kind == mediagate.KindInvalid && e.Message != "" {
		return e.Message
	}
	return "unusable address"
}
