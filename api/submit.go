package api

import (
	"crypto/sha256"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/failpoint"
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

// submit is one that may be taken in.
type submit struct {
	validated validated
	key       string // its idempotency key; empty for none
	path      string
	digest    [sha256.Size]byte // of its bytes
}

// readSubmit judges a submit, in the contract's order. One that was made before
// is not judged again: replayed is the task of its acknowledgement.
func (s *Server) readSubmit(c *call) (sub submit, replayed string, err error) {
	raw, body, err := s.readBody(c, c.models.outlines[c.Path()])
	if err != nil {
		return submit{}, "", err
	}
	sub.path = c.Request().URL.Path
	if sub.key, err = readIdempotencyKey(c.Request().Header); err != nil {
		return submit{}, "", err
	}
	size := len(raw)
	sub.digest = sha256.Sum256(raw) // which is all that is needed of the bytes from here on
	if replayed, err = s.before(c, sub, nil); err != nil || replayed != "" {
		return submit{}, replayed, err
	}
	if sub.validated, err = s.validate(c, body, size, c.Path()); err != nil {
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

// orAcknowledge answers a submit that was refused, or made before.
func orAcknowledge(c *call, replayed string, err error) error {
	if err != nil {
		return err
	}
	return acknowledge(c, replayed, true)
}

// handleSubmit takes a task in.
func (s *Server) handleSubmit(c *call) (err error) {
	traced := s.traceSubmit(c)
	defer func() { traced(err) }()
	sub, before, err := s.readSubmit(c)
	if err != nil || before != "" {
		return orAcknowledge(c, before, err)
	}
	if err := s.storePictures(c, &sub.validated); err != nil {
		before, err = s.before(c, sub, err) // its twin may have taken the money since
		return orAcknowledge(c, before, err)
	}
	c.held.Release() // what follows needs nothing of the body
	if err := s.again(c.ctx, c); err != nil {
		return err
	}
	task, made := s.newTask(c, sub.validated), time.Now()
	id, replayed, err := s.cfg.Store.Submit(c.ctx, mediagate.NewTask{
		Task: task, IdempotencyKey: sub.key, Path: sub.path, BodySHA256: sub.digest, Group: sub.validated.group, Capacity: sub.validated.capacity,
	})
	if mediagate.Is(err, mediagate.KindNotFound) && sub.validated.Source != nil { // erased since it was looked at
		err = unusable(sub.validated.Source, "is unknown")
	}
	if err != nil {
		return err
	}
	if replayed { // its twin, at work at this moment, has the workflow started
		return acknowledge(c, id, true)
	}
	failpoint.Hit(failpoint.SubmitCommitted)
	c.taskID = id
	s.starts.add(task, made)
	return acknowledge(c, id, false)
}

func acknowledge(c *call, taskID string, replayed bool) error {
	c.taskID = taskID
	if replayed {
		c.Response().Header().Set(replayedHeader, "true")
	}
	return c.ok(acknowledgement{http.StatusOK, []submittedTask{{"submitted", taskID}}})
}

// How a submit is repeated.
const (
	idempotencyHeader = "Idempotency-Key"
	replayedHeader    = "Idempotency-Replayed"
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
		Params: o.Params, Reference: o.Reference, RequestID: c.requestID, TraceParent: c.traceParent,
		Plan: plan, Charges: o.Charges, Hold: o.hold(),
		CreatedAt: now, DeadlineAt: now.Add(plan.Timeout),
		Webhook: s.webhookOf(o.Webhook),
	}
}

// maxWebhookURL bounds what is kept of an address, usable ones are shorter.
const maxWebhookURL = 2048

// webhookOf is the callback that a submit asks for. An address that nothing
// may be sent to is kept, so that an operator can see it.
func (s *Server) webhookOf(address string) *mediagate.Webhook {
	if address == "" {
		return nil
	}
	err := s.cfg.CheckWebhookURL(address)
	if err == nil {
		return &mediagate.Webhook{URL: address, State: mediagate.WebhookPending}
	}
	if len(address) > maxWebhookURL {
		cut := maxWebhookURL
		for !utf8.RuneStart(address[cut]) {
			cut--
		}
		address = address[:cut]
	}
	return &mediagate.Webhook{URL: address, State: mediagate.WebhookDropped, Reason: reasonOf(err)}
}

func reasonOf(err error) string {
	if e := domainError(err); e.Kind == mediagate.KindInvalid && e.Message != "" {
		return e.Message
	}
	return "unusable address"
}
