package activities

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/media"
)

// uploadLink is how long a vendor may fetch what came within a request: some
// queue for days.
const uploadLink = 72 * time.Hour

// job is what the adapter sends, or looks up, for an attempt. The row's times
// are the database's; the call is made by this process's clock. Media that came
// within the request become links, signed now; own tells their objects, and those
// of uploads that the request names.
func (a *Activities) job(ctx context.Context, task mediagate.Task, row mediagate.Attempt) (job mediagate.Job, own map[string]string, err error) {
	own = map[string]string{}
	if task.Modal.Resumes(row.N) { // with what the client told instead of its request
		task.Params, task.Plan.Uploads = task.Modal.Input, nil
	}
	if task.Params, err = a.withFiles(ctx, task, own); err != nil {
		return mediagate.Job{}, nil, err
	}
	params, err := a.withUploads(ctx, task, own)
	if err != nil {
		return mediagate.Job{}, nil, err
	}
	source, err := a.source(ctx, task, row)
	if err != nil {
		return mediagate.Job{}, nil, err
	}
	callback := ""
	if a.CallbackURL != nil && a.operation(row.Route).Callback {
		callback = a.CallbackURL(row)
	}
	return mediagate.Job{
		TaskID: task.ID, CallbackURL: callback, Source: source, ExternalID: row.ExternalID, Upstream: row.Route.Upstream, Operation: row.Route.Operation,
		Params: params, SendBefore: time.Now().Add(row.SendBefore.Sub(a.Now())),
	}, own, nil
}

// source is what the job works on, as the attempt's account is told of it.
func (a *Activities) source(ctx context.Context, task mediagate.Task, row mediagate.Attempt) (*mediagate.Source, error) {
	if task.Modal.Resumes(row.N) {
		return a.waitingJob(ctx, task)
	}
	s := task.Plan.Source
	if s == nil || s.Key == "" {
		return s.As(a.Channels.Made(s, row.Channel), ""), nil
	}
	link, err := a.Bucket.Sign(ctx, mediagate.Result{Key: s.Key}, uploadLink)
	return s.As(a.Channels.Made(s, row.Channel), link.URL), err
}

// withUploads is the task's request with a link in each field whose media came
// within it. Links are stored nowhere; their objects are noted in own.
func (a *Activities) withUploads(ctx context.Context, task mediagate.Task, own map[string]string) (json.RawMessage, error) {
	return withLinks(task, func(key string) (string, error) {
		link, err := a.Bucket.Sign(ctx, mediagate.Result{Key: key}, uploadLink)
		own[link.URL] = key
		return link.URL, err
	})
}

// askable is the task's request as adapters are asked about it.
func askable(task mediagate.Task) mediagate.Job {
	params, err := withLinks(task, func(string) (string, error) { return mediagate.UploadComing, nil })
	if err != nil {
		params = task.Params // the job cannot be made either, and says why
	}
	return mediagate.Job{Params: params, Source: task.Plan.Source}
}

// withLinks puts a link into each field whose media came within the request.
func withLinks(task mediagate.Task, link func(key string) (string, error)) (json.RawMessage, error) {
	if len(task.Plan.Uploads) == 0 {
		return task.Params, nil
	}
	params, err := media.Decode(task.Params)
	if err != nil {
		return nil, err
	}
	links := make(map[string]string, len(task.Plan.Uploads))
	for field, key := range task.Plan.Uploads {
		if links[field], err = link(key); err != nil {
			return nil, err
		}
	}
	if params, err = media.SetFields(params, links); err != nil {
		return nil, err
	}
	return media.Encode(params)
}
