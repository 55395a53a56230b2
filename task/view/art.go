package view

import (
	"encoding/json"
	"strconv"

	"github.com/mediagate/mediagate"
)

// ArtStatus is the state of a task in the words of the art endpoint.
type ArtStatus string

// The states. The vendor's own state NOT_START is not among them: a client learns the id of a task
// only once its row is stored, and from then on the task counts as submitted.
const (
	ArtSubmitted  ArtStatus = "SUBMITTED"
	ArtInProgress ArtStatus = "IN_PROGRESS"
	ArtModal      ArtStatus = "MODAL" // it waits for modal parameters
	ArtSuccess    ArtStatus = "SUCCESS"
	ArtFailure    ArtStatus = "FAILURE"
)

// Art is the answer of the art endpoint.
type Art struct {
	ID              string             `json:"id"`
	Status          ArtStatus          `json:"status"`
	Action          string             `json:"action"`
	SourceTaskID    string             `json:"source_task_id,omitempty"`
	Progress        string             `json:"progress"` // as 100%
	GridImageURL    string             `json:"grid_image_url"`
	ImageURLs       []string           `json:"image_urls"`
	Buttons         []mediagate.Button `json:"buttons"`
	Prompt          string             `json:"prompt"`
	FailReason      string             `json:"fail_reason"`
	Descriptions    []string           `json:"descriptions,omitempty"`
	Model           string             `json:"model"`
	Type            mediagate.Type     `json:"type"`
	Cost            json.Number        `json:"cost"`
	CreditsCost     json.Number        `json:"credits_cost"`
	Reference       string             `json:"reference,omitempty"`
	CancelRequested bool               `json:"cancel_requested,omitempty"`
	Webhook         *Webhook           `json:"webhook,omitempty"`
}

// ArtOf returns an art task as the art endpoint shows it. links are those of t.Results, in their
// order.
func ArtOf(t *mediagate.Task, creditsPerUnit int64, links []mediagate.Link) Art {
	unified := Of(t, creditsPerUnit, links)
	v := Art{
		ID: t.ID, Status: artStatus(t), Action: t.Plan.Action, Progress: strconv.Itoa(t.Progress) + "%",
		ImageURLs: []string{}, Buttons: []mediagate.Button{}, Prompt: artPrompt(t),
		Model: t.Model, Type: t.Type, Cost: unified.Cost, CreditsCost: unified.CreditsCost,
		Reference: unified.Reference, CancelRequested: unified.CancelRequested, Webhook: unified.Webhook,
	}
	if t.Plan.Source != nil {
		v.SourceTaskID = t.Plan.Source.TaskID
	}
	switch t.Status {
	case mediagate.StatusFailed:
		if unified.Error != nil {
			v.FailReason = unified.Error.Message
		}
	case mediagate.StatusCancelled:
		v.FailReason = "cancelled"
	case mediagate.StatusCompleted:
		v.Buttons = append(v.Buttons, unified.Buttons...)
		v.Descriptions = unified.Result.Descriptions
		for _, f := range filesOf(t, mediagate.RoleGrid, links) {
			v.GridImageURL = f.link.URL
		}
		for _, f := range filesOf(t, mediagate.RoleMain, links) {
			if f.link.URL != "" {
				v.ImageURLs = append(v.ImageURLs, f.link.URL)
			}
		}
	case mediagate.StatusPending, mediagate.StatusProcessing: // nothing has come of it yet
	}
	return v
}

func artStatus(t *mediagate.Task) ArtStatus {
	switch t.Status {
	case mediagate.StatusPending:
		return ArtSubmitted
	case mediagate.StatusCompleted:
		return ArtSuccess
	case mediagate.StatusFailed, mediagate.StatusCancelled:
		return ArtFailure
	case mediagate.StatusProcessing:
	}
	switch t.Modal.State {
	case mediagate.ModalWaiting, mediagate.ModalExpired: // expired, and about to fail
		return ArtModal
	case mediagate.ModalNone, mediagate.ModalSubmitted:
	}
	return ArtInProgress
}

// artPrompt returns the prompt of the client's modal parameters, or else that of the request. If
// the client gave neither, it returns the prompt that the vendor made.
func artPrompt(t *mediagate.Task) string {
	for _, text := range []json.RawMessage{t.Modal.Input, t.Params} {
		var said struct {
			Prompt string `json:"prompt"`
		}
		if json.Unmarshal(text, &said) == nil && said.Prompt != "" {
			return said.Prompt
		}
	}
	if t.Made != nil {
		return t.Made.Prompt
	}
	return ""
}
