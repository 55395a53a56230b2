package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/failpoint"
	"github.com/mediagate/mediagate/view"
)

// errNoArt is the art endpoint's one answer to ids that are malformed, unknown,
// someone else's, or of no art task.
var errNoArt = &mediagate.Error{Kind: mediagate.KindNotFound, Message: "task not found", Param: "task_id"}

// handleArt shows a task in the words of the art family.
func (s *Server) handleArt(c *call) error {
	t, err := s.pathTask(c)
	switch {
	case mediagate.Is(err, mediagate.KindInvalid), err == nil && t.Type != mediagate.TypeArt:
		return errNoArt
	case err != nil:
		return err
	}
	links, err := s.links(c.ctx, &t)
	if err != nil {
		return err
	}
	return c.linked(http.StatusOK, view.ArtOf(&t, s.cfg.CreditsPerUnit, links))
}

// handleModal takes the parameters that a task in MODAL waits for. It is a
// submit in all but this: there is no new task, and nothing is charged.
func (s *Server) handleModal(c *call) error {
	sub, replayed, err := s.readSubmit(c)
	if mediagate.Is(err, mediagate.KindConflict) { // the task waits no more: for these very parameters, if its twin came since
		replayed, err = s.before(c, sub, err)
	}
	if err != nil || replayed != "" {
		return orAcknowledge(c, replayed, err)
	}
	c.held.Release()
	if err := s.again(c.ctx, c); err != nil {
		return err
	}
	taskID := sub.order.Source.Task
	again, err := s.cfg.Store.SubmitModal(c.ctx, mediagate.ModalCall{
		AccountID: c.caller.key.AccountID, TaskID: taskID, Input: sub.order.Params,
		IdempotencyKey: sub.key, Path: sub.path, BodySHA256: sub.digest,
	})
	if err != nil {
		return err
	}
	if again {
		return acknowledge(c, taskID, true)
	}
	failpoint.Hit(failpoint.ModalCommitted)
	c.taskID = taskID
	s.wake(c)
	return acknowledge(c, taskID, false)
}

// actionInpaint is the action whose modal parameters must have a mask.
const actionInpaint = "INPAINT"

// resumed judges modal parameters by the task that they are for, and returns
// them at its speed: that is what is paid for, and the call itself costs nothing.
func (s *Server) resumed(c *call, r catalog.Request) (json.RawMessage, error) {
	task, err := s.accountTask(c, r.Source, r.Source.Task)
	if err != nil {
		return nil, err
	}
	if err := mayResume(&task, r); err != nil {
		return nil, err
	}
	var said, paid map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(r.Params, &said), json.Unmarshal(task.Params, &paid)); err != nil {
		return nil, mediagate.Errorf(mediagate.KindInternal, "the accepted parameters are no object: %w", err)
	}
	const speed = "speed"
	if paid[speed] != nil {
		said[speed] = paid[speed]
	}
	params, err := json.Marshal(said)
	if err != nil {
		return nil, mediagate.Errorf(mediagate.KindInternal, "the modal parameters cannot be written: %w", err)
	}
	return params, nil
}

// mayResume says whether the task takes these modal parameters.
func mayResume(task *mediagate.Task, r catalog.Request) error {
	var said struct {
		Prompt string `json:"prompt"`
		Mask   string `json:"mask_url"`
	}
	if err := json.Unmarshal(r.Params, &said); err != nil {
		return mediagate.Errorf(mediagate.KindInternal, "the accepted parameters are no object: %w", err)
	}
	switch {
	case said.Mask == "" && task.Plan.Action == actionInpaint:
		return mediagate.Invalid("mask_url", "mask_url is required: the task inpaints")
	case said.Mask == "" && strings.TrimSpace(said.Prompt) == "":
		return mediagate.Invalid("prompt", "prompt or mask_url is required")
	case task.Status.Terminal() || !task.CancelRequestedAt.IsZero() || task.Modal.State != mediagate.ModalWaiting:
		return mediagate.Errorf(mediagate.KindConflict, "the task does not wait for modal parameters")
	}
	return nil
}
