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

// submitRequest is the body of a submit, parsed but not yet validated.
type submitRequest struct {
	endpoint    string // the path of the submit
	body        map[string]any
	size        int
	digest      [sha256.Size]byte // of the body's bytes, or of a form's parts
	strict      []string          // in strict mode the fields that the client wrote, each of which must be known
	translate   translation       // nil if the body is in our own form
	attachments []attachment      // pictures in the body
	// adoptionWait is how long the submit waits for its task, if an equal submit may adopt the task
	// later. 0 means that none may.
	adoptionWait time.Duration
}

// translation converts a body into our own form. For each of our fields that the client named
// differently, sent has the client's name.
type translation func(
	o *catalog.Operation, body map[string]any,
) (ours map[string]any, sent map[string]string, err error)

// readSubmitRequest reads the body of a submit in our own form.
func (s *Server) readSubmitRequest(c *call) (submitRequest, error) {
	raw, body, err := s.readBody(c, c.models.fieldMasks[c.Path()])
	if err != nil {
		return submitRequest{}, err
	}
	names, err := c.strictNames(raw)
	// The bytes themselves are not needed any more.
	return submitRequest{endpoint: c.Path(), body: body, size: len(raw), digest: sha256.Sum256(raw), strict: names}, err
}

const strictHeader = "Mediagate-Strict"

// strictNames returns the field names of a body if header or key ask for strict mode, in which
// every field must be known. The header takes precedence. It leaves out own, the fields of the call
// itself.
func (c *call) strictNames(raw []byte, own ...string) ([]string, error) {
	strict := c.caller.key.Strict
	switch value := c.Request().Header.Get(strictHeader); {
	case value == "":
	case strings.EqualFold(value, yes):
		strict = true
	case strings.EqualFold(value, "false"):
		strict = false
	default:
		return nil, mediagate.Invalid(
			strictHeader, "%s must be true or false", strictHeader,
		).Because(mediagate.ReasonNotOneOf)
	}
	if !strict {
		return nil, nil
	}
	return slices.DeleteFunc(namesIn(raw), func(name string) bool { return slices.Contains(own, name) }), nil
}

// submit is a validated submit.
type submit struct {
	validated   validated
	key         string // the idempotency key; empty for none
	path        string
	digest      [sha256.Size]byte
	attachments []attachment
}

// readSubmit reads a submit and validates it in the order that the contract gives. If the client
// repeats an earlier submit, readSubmit validates nothing, and replayed is the id of that submit's task.
func (s *Server) readSubmit(c *call, read func(*call) (submitRequest, error)) (sub submit, replayed string, err error) {
	o, err := read(c)
	if err != nil {
		return submit{}, "", err
	}
	sub.path = c.Request().URL.Path
	sub.digest = o.digest
	sub.attachments = o.attachments
	if sub.key, err = readIdempotencyKey(c.Request().Header); err != nil {
		return submit{}, "", err
	}
	if replayed, err = s.replayedTask(c, sub, nil); err != nil {
		return submit{}, "", err
	}
	if wait := c.adoptionWait(o); wait > 0 {
		adopted, err := s.adopt(c, sub, wait, replayed)
		if err != nil || adopted != "" {
			return submit{}, adopted, err
		}
	}
	if replayed != "" {
		return submit{}, replayed, nil
	}
	if o.endpoint != catalog.ModalEndpoint { // a modal call continues a running task
		if err := c.caller.mayBegin(); err != nil {
			return submit{}, "", err
		}
	}
	if sub.validated, err = s.validate(c, o); err != nil {
		return sub, "", err // with sub, since a modal call looks for an equal earlier call by sub.key
	}
	return sub, "", s.moderate(c, sub.validated)
}

// replayedTask returns the task of an earlier submit with the same idempotency key. If there is
// none it returns the refusal, which may be nil.
func (s *Server) replayedTask(c *call, sub submit, refusal error) (taskID string, err error) {
	if sub.key == "" {
		return "", refusal
	}
	taskID, found, err := s.cfg.Store.Replay(c.ctx, c.caller.key.AccountID, sub.key, sub.path, sub.digest)
	if err == nil && !found {
		err = refusal
	}
	return taskID, err
}

// handleSubmit accepts a submit and acknowledges it.
func (s *Server) handleSubmit(c *call) error {
	if _, _, err := s.acceptSubmit(c, s.readSubmitRequest); err != nil {
		return err
	}
	return s.acknowledge(c)
}

// acceptSubmit makes the task that a submit asks for. If the submit was made before, it returns
// the earlier task with only its id set.
func (s *Server) acceptSubmit(
	c *call, read func(*call) (submitRequest, error),
) (t mediagate.Task, replayed bool, err error) {
	traced := s.traceSubmit(c)
	defer func() {
		if err == nil && t.ID != "" { // t is empty after a panic
			noteTask(c, t.ID, replayed)
		}
		traced(err)
	}()
	sub, earlierID, err := s.readSubmit(c, read)
	if err != nil || earlierID != "" {
		return mediagate.Task{ID: earlierID}, true, err
	}
	if err = s.storePictures(c, &sub.validated); err == nil {
		err = s.storeAttachments(c, &sub)
	}
	if err != nil {
		// An equal submit may have taken the money meanwhile.
		earlierID, err = s.replayedTask(c, sub, err)
		return mediagate.Task{ID: earlierID}, true, err
	}
	c.bodyPermit.Release() // the body is not needed any more
	if err := s.reauthorize(c.ctx, c); err != nil {
		return t, false, err
	}
	task, made := s.newTask(c, sub.validated), time.Now()
	c.mayHaveTask = sub.key == ""
	id, replayed, err := s.cfg.Store.Submit(c.ctx, mediagate.NewTask{
		Task:           task,
		IdempotencyKey: sub.key,
		Path:           sub.path,
		BodySHA256:     sub.digest,
		Group:          sub.validated.group,
		Capacity:       sub.validated.capacity,
		Waiter:         c.waiter,
	})
	if mediagate.Is(err, mediagate.KindNotFound) && sub.validated.Source != nil { // erased meanwhile
		err = errSource(sub.validated.Source, "is unknown")
	}
	if mediagate.Is(err, mediagate.KindInvalid) { // a source has ended meanwhile
		err = withSentName(err, sub.validated.Folded)
	}
	if err != nil || replayed { // an equal submit, which is in progress, starts the run
		return mediagate.Task{ID: id}, replayed, err
	}
	if c.waiter != nil {
		s.watchClient(c)
	}
	failpoint.Hit(failpoint.SubmitCommitted)
	s.starts.add(task, made)
	return task, false, nil
}

// noteTask names the task of a submit in the headers of the answer, and in the log.
func noteTask(c *call, taskID string, replayed bool) {
	c.taskID = taskID
	if replayed {
		c.Response().Header().Set(replayedHeader, "true")
	}
	c.Response().Header().Set("Location", "/v1/tasks/"+taskID)
}

// acknowledge answers a submit. If the client prefers to wait and the task ends in time, it
// answers with the task.
func (s *Server) acknowledge(c *call) error {
	if wait := preferredWait(c.Request().Header); wait > 0 {
		if t, err := s.awaitOutcome(c, wait); err == nil {
			c.noteWait(wait)
			if t.Status.Terminal() {
				return s.answerTask(c, http.StatusOK, &t)
			}
		}
	}
	return c.linked(http.StatusOK, acknowledgement{http.StatusOK, []submittedTask{{"submitted", c.taskID}}})
}

// awaitOutcome waits for the end of the call's task, at most this long, and returns the task as
// it is then. While it waits it holds nothing that other submits need.
func (s *Server) awaitOutcome(c *call, most time.Duration) (mediagate.Task, error) {
	if err := c.requireScope(mediagate.ScopeRead); err != nil {
		return mediagate.Task{}, err
	}
	c.requestPermit.Release()
	c.answerWithin(most)
	c.setTimeout(s.cfg.StoreTimeout)
	t, err := s.readTask(c, c.taskID)
	if err != nil || t.Status.Terminal() || most == 0 {
		return t, err
	}
	return s.awaitEnd(c, t, most)
}

// preference reads one of the preferences in Prefer (RFC 7240). The first occurrence counts.
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

// preferredWait reads Prefer: wait=N, in whole seconds. It returns 60 s for a wait without a number
// or above 60, and 0 if Prefer has no readable wait.
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

// noteWait reports in the answer how long the call was ready to wait.
func (c *call) noteWait(most time.Duration) {
	c.Response().Header().Add(appliedHeader, fmt.Sprintf("wait=%d", seconds(most)))
}

// appliedHeader names the preferences that the answer honours (RFC 7240).
const appliedHeader = "Preference-Applied"

// The headers and bounds of repeated submits.
const (
	idempotencyHeader = "Idempotency-Key"
	replayedHeader    = "Idempotency-Replayed"
	shouldRetryHeader = "X-Should-Retry" // OpenAI's clients retry 408, 409, 429 and 5xx unless this is false
	maxIdempotencyKey = 255
	idempotencyTTL    = 24 * time.Hour // at least; the store may keep keys longer
)

// readIdempotencyKey returns "" if the client sent no key. A header that is present must hold a
// usable key: ignoring it could charge a client twice.
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

// newTask makes the row of a validated submit. Its times have the database's precision. The id
// holds the time of creation, by which lists are sorted.
func (s *Server) newTask(c *call, v validated) mediagate.Task {
	now := s.now().UTC().Truncate(time.Microsecond)
	plan := v.Plan
	if plan.Timeout <= 0 || plan.Timeout > s.cfg.TaskTimeout {
		plan.Timeout = s.cfg.TaskTimeout
	}
	plan.ParkTimeout = s.cfg.ParkTimeout
	plan.ParkRetry = s.cfg.ParkRetry
	plan.QueueTimeout = s.cfg.QueueTimeout
	if v.kind == mediagate.TypeArt {
		plan.Modal = s.cfg.ModalTimeout
	}
	return mediagate.Task{
		ID:          s.newIDAt(taskPrefix, now),
		AccountID:   c.caller.key.AccountID,
		KeyID:       c.caller.key.ID,
		Model:       v.model,
		Type:        v.kind,
		Status:      mediagate.StatusPending,
		Version:     1,
		Params:      v.Params,
		Endpoint:    v.endpoint,
		Reference:   v.Reference,
		RequestID:   c.requestID,
		TraceParent: c.traceParent,
		Plan:        plan,
		Sources:     v.sources,
		Charges:     v.Charges,
		Hold:        v.hold(),
		CreatedAt:   now,
		DeadlineAt:  now.Add(plan.Timeout),
		Webhook:     s.webhookOf(cmp.Or(v.Webhook, c.caller.account.Webhook)),
	}
}

// maxWebhookURL bounds how much of an unusable address is kept. Usable ones are shorter.
const maxWebhookURL = 2048

// webhookOf returns the callback of a submit. It keeps an unusable address, so that operators can
// see it.
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
