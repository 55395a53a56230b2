package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
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
	return mediagate.Job{
		TaskID: task.ID, Source: source, ExternalID: row.ExternalID, Upstream: row.Route.Upstream, Operation: row.Route.Operation,
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
	params, err := decode(task.Params)
	if err != nil {
		return nil, err
	}
	for field, key := range task.Plan.Uploads {
		url, err := link(key)
		if err != nil {
			return nil, err
		}
		if params, err = setField(params, field, url); err != nil {
			return nil, incomplete(err)
		}
	}
	return encode(params)
}

func incomplete(err error) error {
	return &mediagate.Error{Kind: mediagate.KindInternal, Message: "the stored request cannot be completed", Err: err}
}

// decode reads a stored request with its numbers as they stand.
func decode(params json.RawMessage) (request any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(params))
	decoder.UseNumber()
	if err := decoder.Decode(&request); err != nil {
		return nil, incomplete(err)
	}
	return request, nil
}

func encode(request any) (json.RawMessage, error) {
	text, err := json.Marshal(request)
	if err != nil {
		return nil, incomplete(err)
	}
	return text, nil
}

// maxItems bounds the lists that a field's name may stretch.
const maxItems = 1000

// setField sets the field of a decoded request that a path like
// subjects[1].image_urls[0] names, and returns the request. A list is made as
// long as it has to be: several of its items may have come as uploads.
func setField(in any, path, value string) (any, error) {
	if path == "" {
		return value, nil
	}
	if rest, ok := strings.CutPrefix(path, "["); ok {
		digits, rest, ok := strings.Cut(rest, "]")
		index, err := strconv.Atoi(digits)
		list, isList := in.([]any)
		if !ok || err != nil || index < 0 || index >= maxItems || in != nil && !isList {
			return nil, fmt.Errorf("no item %q in the request", path)
		}
		for len(list) <= index {
			list = append(list, nil)
		}
		list[index], err = setField(list[index], strings.TrimPrefix(rest, "."), value)
		return list, err
	}
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	name, rest := path[:end], strings.TrimPrefix(path[end:], ".")
	fields, isObject := in.(map[string]any)
	if name == "" || in != nil && !isObject {
		return nil, fmt.Errorf("no field %q in the request", path)
	}
	if fields == nil {
		fields = map[string]any{}
	}
	var err error
	fields[name], err = setField(fields[name], rest, value)
	return fields, err
}

// partsOf is how many calls the job of a task takes, one a file, by the field
// of its request that says so.
func partsOf(params json.RawMessage, field string) int {
	if field == "" {
		return 1
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(params, &fields) != nil {
		return 1
	}
	n, err := strconv.Atoi(string(fields[field]))
	if err != nil || n < 1 {
		return 1
	}
	return n
}
