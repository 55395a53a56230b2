package providertest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/providertest"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// toy is an adapter that does all that an adapter can: before it submits it gets
// a token from another host, it sends the client's picture along, asks for several jobs at once, asks for a file when a job has
// succeeded, opens files, and stops jobs. Words to avoid go into a field, or
// where the vendor has none into the prompt.
type toy struct {
	http *vendorhttp.Client
	key  mediagate.Secret
	auth string // where tokens come from
	into func(request map[string]string, words string)
	// follow opens what a download is redirected to.
	follow func(ctx context.Context, link string, redirects int) (io.ReadCloser, int64, error)
}

func inField(request map[string]string, words string) { request["avoid"] = words }
func inPrompt(request map[string]string, words string) {
	request["prompt"] += ", without " + words
}

const toySubmit = 20 * time.Second

// toyToken is a token that looks like a word.
const toyToken = "swordfish"

func toyAdapter(into func(map[string]string, string)) providers.Adapter {
	about := providers.Description{
		Credentials: []string{"api_key"},
		Options:     []string{"auth_url"},
		Operations: map[string]providers.Operation{"video": {
			Fields: []string{"prompt", "negative_prompt", "first_frame_image"}, Media: "video",
			Cancel: true, Batch: 10, Inputs: true, Submit: toySubmit,
		}},
	}
	return providers.Adapter{
		Description: about,
		Account:     func(ch mediagate.Channel) string { return ch.Credentials["api_key"].Reveal() },
		Open: func(ch mediagate.Channel, opt providers.Options) (providers.Provider, error) {
			check := vendorhttp.Check(ch)
			check.Known(about.Credentials, about.Options)
			base, key := check.BaseURL("https://api.toy.example.com"), check.Credential("api_key")
			if err := check.Err(); err != nil {
				return nil, err
			}
			return &toy{vendorhttp.New(vendorhttp.Config{BaseURL: base, Secrets: []mediagate.Secret{key}}, opt), key, ch.Options["auth_url"], into, opt.Follow}, nil
		},
		Express: func(job mediagate.Job, _ map[string]string) error {
			_, _, err := toyRequest(job, into)
			return err
		},
	}
}

func toyRequest(job mediagate.Job, into func(map[string]string, string)) (request map[string]string, picture string, err error) {
	if job.Operation != "video" {
		return nil, "", mediagate.Errorf(mediagate.KindNotFound, "operation %q is unknown here", job.Operation)
	}
	var p struct {
		Prompt string `json:"prompt"`
		Avoid  string `json:"negative_prompt"`
		Frame  string `json:"first_frame_image"`
	}
	if err := vendorhttp.DecodeParams(job.Params, &p); err != nil {
		return nil, "", err
	}
	request = map[string]string{"model": job.Upstream, "prompt": p.Prompt}
	if p.Avoid != "" {
		into(request, p.Avoid)
	}
	if len(request["prompt"]) > 40 {
		return nil, "", mediagate.Invalid("prompt", "prompt is too long")
	}
	return request, p.Frame, nil
}

// toyForm is the request with the client's picture, which is read while it is
// sent; close ends the reading.
func toyForm(ctx context.Context, request map[string]string, picture string, in mediagate.Inputs) (form vendorhttp.Body, end func(), err error) {
	var parts []vendorhttp.Part
	for _, name := range slices.Sorted(maps.Keys(request)) {
		parts = append(parts, vendorhttp.Part{Name: name, Value: request[name]})
	}
	end = func() {}
	if picture != "" {
		file, length, err := in.Open(ctx, picture, 1<<20)
		if err != nil {
			return form, end, err
		}
		end = func() { _ = file.Close() }
		parts = append(parts, vendorhttp.Part{Name: "frame", FileName: "frame", Type: "image/png", Content: file, Length: length})
	}
	form, err = vendorhttp.Multipart(parts...)
	return form, end, err
}

// do makes a call and decodes what the vendor says with 200.
func (a *toy) do(ctx context.Context, call vendorhttp.Call, v any) error {
	call.Header = http.Header{"Authorization": {"Bearer " + a.key.Reveal()}}
	answer, err := a.http.Do(ctx, call)
	if err != nil {
		return err
	}
	var said struct{ Code, Message vendorhttp.Text }
	decoded := answer.Decode(&said)
	if answer.Status == http.StatusOK && decoded == nil && answer.Decode(v) == nil {
		return nil
	}
	meaning := vendorhttp.Meaning{Kind: mediagate.KindTransient}
	switch {
	case call.Effect == vendorhttp.Submits:
		meaning.Kind = vendorhttp.RefusalKind(answer.Status)
	case decoded == nil && said.Code == "absent":
		meaning.Kind = mediagate.KindNotFound
	}
	return a.http.Refuse(meaning, answer, string(said.Code), "", string(said.Message))
}

func unclear(what string) error { return mediagate.Errorf(mediagate.KindTransient, "%s", what) }

func (a *toy) Submit(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
	request, picture, err := toyRequest(job, a.into)
	if err != nil {
		return mediagate.Submission{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, toySubmit)
	defer cancel()
	var token struct{ Token vendorhttp.Text }
	err = a.do(ctx, vendorhttp.Call{Effect: vendorhttp.Reads, Base: a.auth, Path: "/token", Body: vendorhttp.Form(url.Values{"for": {"jobs"}})}, &token)
	if err == nil && token.Token.ID() == "" {
		err = unclear("the answer has no token")
	}
	if err != nil {
		return mediagate.Submission{}, vendorhttp.BeforeSubmission(err)
	}
	a.http.Hide(mediagate.NewSecret(token.Token.ID()))
	request["token"] = token.Token.ID()
	form, end, err := toyForm(ctx, request, picture, job.Inputs)
	if err != nil {
		return mediagate.Submission{}, vendorhttp.BeforeSubmission(err)
	}
	defer end()
	var said struct{ ID vendorhttp.Text }
	err = a.do(ctx, vendorhttp.Call{
		Effect: vendorhttp.Submits, Path: "/jobs", Body: form, SendBefore: job.SendBefore,
		Limits: vendorhttp.Limits{Total: toySubmit},
	}, &said)
	if err == nil && said.ID.ID() == "" {
		err = mediagate.Errorf(mediagate.KindAmbiguous, "the answer names no job")
	}
	if err != nil {
		return mediagate.Submission{}, err
	}
	return mediagate.Submission{Ref: mediagate.JobRef{JobID: said.ID.ID(), ExternalID: job.ExternalID, Operation: job.Operation}}, nil
}

func (a *toy) Poll(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	answers, err := a.PollAll(ctx, []mediagate.JobRef{ref})
	if err != nil {
		return mediagate.Report{}, err
	}
	return answers[0].Report, answers[0].Err
}

var toyWords = map[string]mediagate.JobState{
	"waiting": mediagate.JobQueued, "running": mediagate.JobRunning, "done": mediagate.JobSucceeded, "broken": mediagate.JobFailed,
}

func (a *toy) PollAll(ctx context.Context, refs []mediagate.JobRef) ([]providers.Answer, error) {
	var ids []string
	for _, ref := range refs {
		ids = append(ids, ref.JobID)
	}
	type job struct{ ID, Word, Text, File vendorhttp.Text }
	var said struct{ Jobs []job }
	if err := a.do(ctx, vendorhttp.Call{Effect: vendorhttp.Reads, Path: "/jobs/query", Body: vendorhttp.JSON(map[string][]string{"ids": ids})}, &said); err != nil {
		return nil, err
	}
	if len(said.Jobs) == 0 {
		return nil, unclear("the answer names no job")
	}
	jobs := map[string]job{}
	for _, j := range said.Jobs {
		jobs[j.ID.ID()] = j
	}
	answers := make([]providers.Answer, len(refs))
	for i, ref := range refs {
		j, ok := jobs[ref.JobID]
		if !ok {
			answers[i].Err = unclear("the answer leaves the job out")
			continue
		}
		answers[i].Report, answers[i].Err = a.report(ctx, ref, string(j.Word), string(j.Text), j.File.ID())
	}
	return answers, nil
}

func (a *toy) report(ctx context.Context, ref mediagate.JobRef, word, text, file string) (mediagate.Report, error) {
	state, ok := toyWords[word]
	if !ok {
		state = mediagate.JobUnknown
	}
	r := mediagate.Report{Ref: ref, State: state, Word: a.http.Clean(word), Percent: -1, Named: true}
	switch state {
	case mediagate.JobSucceeded:
		var out mediagate.Outcome
		if file != "" {
			var said struct{ Ref vendorhttp.Text }
			if err := a.do(ctx, vendorhttp.Call{Effect: vendorhttp.Reads, Path: "/files/" + url.PathEscape(file)}, &said); err != nil {
				return mediagate.Report{}, err
			}
			if said.Ref.ID() == "" {
				return mediagate.Report{}, unclear("the answer names no file")
			}
			out.Media = []mediagate.Media{{Ref: said.Ref.ID()}}
		}
		r.Offer(&out, true)
	case mediagate.JobFailed:
		r.Outcome = &mediagate.Outcome{Failure: &mediagate.Failure{Code: mediagate.CodeGenerationFailed, Message: "the generation failed"}}
		if text = a.http.Clean(text); text != "" {
			r.Outcome.Failure.Message = text
		}
	default:
	}
	return r, nil
}

func (a *toy) Cancel(ctx context.Context, ref mediagate.JobRef) error {
	return a.do(ctx, vendorhttp.Call{Effect: vendorhttp.Stops, Method: http.MethodDelete, Path: "/jobs/" + url.PathEscape(ref.JobID)}, &struct{}{})
}

func (a *toy) Open(ctx context.Context, _ mediagate.JobRef, media mediagate.Media) (io.ReadCloser, int64, error) {
	s, err := a.http.Stream(ctx, vendorhttp.Call{
		Effect: vendorhttp.Reads, Path: "/content/" + url.PathEscape(media.Ref), Limits: vendorhttp.Limits{Total: time.Minute, Bytes: 1 << 30},
	})
	if err != nil {
		return nil, 0, err
	}
	switch s.Status {
	case http.StatusOK:
		return s.Body, s.Length(), nil
	case http.StatusFound:
		_ = s.Body.Close()
		return a.follow(ctx, s.Location, 4) // of five
	case http.StatusNotFound, http.StatusGone:
		err = mediagate.Errorf(mediagate.KindGone, "the vendor has the file no more")
	default:
		err = unclear("the file cannot be had now")
	}
	_ = s.Body.Close()
	return nil, 0, err
}

func (a *toy) Close() { a.http.Close() }

func toySuite(into func(map[string]string, string)) providertest.Suite {
	ref := mediagate.JobRef{JobID: "j7", ExternalID: "task_1", Operation: "video"}
	batch := func(ids, words []string) providertest.Reply {
		var jobs []string
		for i, id := range ids {
			jobs = append(jobs, fmt.Sprintf(`{"id":%q,"word":%q,"file":"f1"}`, id, words[i]))
		}
		return providertest.Reply{Body: `{"jobs":[` + strings.Join(jobs, ",") + `]}`}
	}
	quote := func(s string) string {
		b, err := json.Marshal(s)
		if err != nil {
			panic(err)
		}
		return string(b)
	}
	return providertest.Suite{
		Adapter: toyAdapter(into),
		Channel: mediagate.Channel{
			Name: "toy-a", Provider: "toy",
			Credentials: mediagate.Secrets(map[string]string{"api_key": "sk-tOy4mQ9xW2vB8nR"}), Options: map[string]string{"auth_url": "{vendor}"},
		},
		Job: mediagate.Job{
			TaskID: "task_1", ExternalID: "task_1", Upstream: "toy-1", Operation: "video",
			Params: []byte(`{"prompt":"a boat","negative_prompt":"fog","first_frame_image":"https://pictures.example.com/1"}`),
		},
		Files:   map[string]string{"https://pictures.example.com/1": "a picture"},
		Secrets: []string{toyToken},
		Inexpressible: []mediagate.Job{
			{Upstream: "toy-1", Operation: "video", Params: []byte(`{"prompt":"` + strings.Repeat("x", 41) + `"}`)},
		},
		Before:     []providertest.Exchange{{Route: "POST /token", Reply: providertest.Reply{Body: `{"token":"` + toyToken + `"}`}}},
		Beside:     []providertest.Exchange{{Route: "GET /files/{id}", Reply: providertest.Reply{Body: `{"ref":"f1"}`}}},
		Accepted:   providertest.Reply{Body: `{"id":"j7"}`},
		Submission: mediagate.Submission{Ref: ref},
		Refused: func(text string) providertest.Reply {
			return providertest.Reply{Status: 400, Body: `{"code":"bad","message":` + quote(text) + `}`}
		},
		Ref:   ref,
		Word:  func(word string) providertest.Reply { return batch([]string{"j7"}, []string{word}) },
		Words: toyWords,
		Failed: func(text string) providertest.Reply {
			return providertest.Reply{Body: `{"jobs":[{"id":"j7","word":"broken","text":` + quote(text) + `}]}`}
		},
		PollRows: map[string]providertest.Row{
			"absent": {Reply: providertest.Reply{Status: 404, Body: `{"code":"absent"}`}, Kind: mediagate.KindNotFound},
		},
		Lies:    map[string]providertest.Reply{"another job": batch([]string{"j8"}, []string{"done"})},
		Bare:    map[string]providertest.Reply{"no file": {Body: `{"jobs":[{"id":"j7","word":"done"}]}`}},
		Stop:    "DELETE /jobs/j7",
		Stopped: providertest.Reply{Body: `{}`},
		CancelRows: map[string]providertest.Row{
			"absent": {Reply: providertest.Reply{Status: 404, Body: `{"code":"absent"}`}, Kind: mediagate.KindNotFound},
		},
		Together: func(ids []string) string {
			return `POST /jobs/query` + "\n" + `{"ids":["` + strings.Join(ids, `","`) + `"]}`
		},
		Batch: batch,
		Media: mediagate.Media{Ref: "f1"},
		File:  providertest.Reply{Body: "the film"},
	}
}
