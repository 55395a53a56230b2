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
// within the request become links, signed now; own tells their objects.
func (a *Activities) job(ctx context.Context, task mediagate.Task, row mediagate.Attempt) (job mediagate.Job, own map[string]string, err error) {
	params := task.Params
	if len(task.Plan.Uploads) > 0 {
		if params, own, err = a.withUploads(ctx, task); err != nil {
			return mediagate.Job{}, nil, err
		}
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
	s := task.Plan.Source
	if s == nil || s.Key == "" {
		return s.As(a.Channels.Made(s, row.Channel), ""), nil
	}
	link, err := a.Bucket.Sign(ctx, mediagate.Result{Key: s.Key}, uploadLink)
	return s.As(a.Channels.Made(s, row.Channel), link.URL), err
}

// withUploads is the task's request with a link in each field whose media came
// within it. Links are stored nowhere; own tells their objects.
func (a *Activities) withUploads(ctx context.Context, task mediagate.Task) (params json.RawMessage, own map[string]string, err error) {
	own = make(map[string]string, len(task.Plan.Uploads))
	params, err = withLinks(task, func(key string) (string, error) {
		link, err := a.Bucket.Sign(ctx, mediagate.Result{Key: key}, uploadLink)
		own[link.URL] = key
		return link.URL, err
	})
	return params, own, err
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
	unreadable := func(err error) error {
		return &mediagate.Error{Kind: mediagate.KindInternal, Message: "the stored request cannot be completed", Err: err}
	}
	var params any
	decoder := json.NewDecoder(bytes.NewReader(task.Params))
	decoder.UseNumber()
	if err := decoder.Decode(&params); err != nil {
		return nil, unreadable(err)
	}
	for field, key := range task.Plan.Uploads {
		url, err := link(key)
		if err != nil {
			return nil, err
		}
		if params, err = setField(params, field, url); err != nil {
			return nil, unreadable(err)
		}
	}
	text, err := json.Marshal(params)
	if err != nil {
		return nil, unreadable(err)
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
