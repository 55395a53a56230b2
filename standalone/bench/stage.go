package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/catalog/price"
	"github.com/mediagate/mediagate/providers/all"
	"github.com/mediagate/mediagate/task"
)

// stage puts tasks into a state without going through vendor and workflow,
// by the same calls of the store that those make.
type stage struct {
	g           *gateway
	request     catalog.Request
	fingerprint string
}

// channelKling is the channel that polls for staged tasks.
const channelKling = "kling"

func newStage(g *gateway) (*stage, error) {
	models, err := catalog.Load("")
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(strings.NewReader(videoBody))
	decoder.UseNumber()
	var body map[string]any
	if err := decoder.Decode(&body); err != nil {
		return nil, err
	}
	s := &stage{g: g}
	operation, err := models.Find(videoPath, body)
	if err != nil {
		return nil, err
	}
	if s.request, err = operation.Accept(body); err != nil {
		return nil, err
	}
	for _, c := range g.Config.Channels {
		if c.Name == channelKling {
			s.fingerprint = all.Fingerprint(mediagate.Channel{Name: c.Name, Provider: c.Provider, Credentials: mediagate.Secrets(c.Credentials)})
		}
	}
	return s, nil
}

// pending takes a task in.
func (s *stage) pending(ctx context.Context) (mediagate.Task, error) {
	return s.taken(ctx, "", [sha256.Size]byte{})
}

// taken takes a task in by that idempotency key, or without one.
func (s *stage) taken(ctx context.Context, key string, body [sha256.Size]byte) (mediagate.Task, error) {
	now := time.Now().UTC()
	t := mediagate.Task{
		ID: "task_" + ulid.Make().String(), AccountID: s.g.key.AccountID, KeyID: s.g.key.ID, Model: "alpha-v3", Type: mediagate.TypeVideo,
		Status: mediagate.StatusPending, Version: 1, Params: s.request.Params, RequestID: "req_bench", Plan: s.request.Plan,
		Charges: s.request.Charges, Hold: price.Total(s.request.Charges), CreatedAt: now, DeadlineAt: now.Add(s.request.Plan.Timeout),
	}
	_, _, err := s.g.Store.Submit(ctx, mediagate.NewTask{Task: t, Path: videoPath, IdempotencyKey: key, BodySHA256: body})
	return t, err
}

// accepted is a task that a vendor works on; it is polled for from then on.
func (s *stage) accepted(ctx context.Context, firstPoll time.Duration) (mediagate.Task, error) {
	t, err := s.pending(ctx)
	if err != nil {
		return t, err
	}
	now := time.Now()
	sent := task.Sending{
		N: 1, Channel: channelKling, Provider: "kling", Fingerprint: s.fingerprint, Route: t.Plan.Routes[0],
		ExternalID: t.ID, SendBefore: now.Add(10 * time.Second), CallEnds: now.Add(time.Minute),
	}
	if _, err := s.g.Store.OpenIntent(ctx, t.ID, mediagate.Slots{}, task.IntentStored{Sending: sent}); err != nil {
		return t, err
	}
	_, err = s.g.Store.Change(ctx, t.ID, task.Accepted{Sending: sent, FirstPollAt: now.Add(firstPoll), Submission: mediagate.Submission{Ref: mediagate.JobRef{
		JobID: "job-" + t.ID, ExternalID: t.ID, Operation: "video", State: "text2video",
	}}})
	return t, err
}

// completed is a task that has ended with a file.
func (s *stage) completed(ctx context.Context) (mediagate.Task, error) {
	t, err := s.accepted(ctx, time.Hour)
	if err != nil {
		return t, err
	}
	results := []mediagate.Result{{
		Key: "results/" + t.ID + "/1/0", MimeType: "video/mp4", Size: 1 << 20, SHA256: strings.Repeat("ab", 32), Width: 1280, Height: 720, Duration: 5,
	}}
	if _, err := s.g.Store.Change(ctx, t.ID, task.VendorEnded{N: 1, Outcome: mediagate.Outcome{
		Succeeded: true, Media: []mediagate.Media{{URL: "https://media.example.com/1.mp4"}}, Seconds: 5,
	}}); err != nil {
		return t, err
	}
	_, err = s.g.Store.Change(ctx, t.ID, task.Mirrored{N: 1, Results: results})
	return t, err
}
