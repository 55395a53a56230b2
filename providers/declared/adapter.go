package declared

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 4 << 20

// Adapter returns the vendor's entry for the table of vendors.
func (v *Vendor) Adapter() providers.Adapter {
	about := providers.Description{Options: v.options, Operations: map[string]providers.Operation{}}
	for _, c := range v.credentials {
		about.Credentials = append(about.Credentials, c.name)
	}
	for name, o := range v.operations {
		about.Operations[name] = o.about
	}
	return providers.Adapter{
		Description: about, Open: v.open,
		Account: func(ch mediagate.Channel) string {
			var parts []string
			for _, c := range v.credentials {
				parts = append(parts, ch.Credentials[c.name].Reveal())
			}
			return strings.Join(parts, "\x00")
		},
		Supports: func(job mediagate.Job, options map[string]string) error {
			_, err := v.write(job, options)
			return err
		},
	}
}

// connect returns the adapter of a channel.
func (v *Vendor) connect(ch mediagate.Channel, opt providers.Options) (*adapter, error) {
	check := vendorhttp.Check(ch)
	var names []string
	header, secrets := http.Header{}, []mediagate.Secret{}
	for _, c := range v.credentials {
		names = append(names, c.name)
		secret := check.Credential(c.name)
		secrets = append(secrets, secret)
		header.Set(c.header, strings.Replace(c.value, "{}", secret.Reveal(), 1))
	}
	check.CheckNames(names, v.options)
	base := check.BaseURL(v.base)
	if err := check.Err(); err != nil {
		return nil, err
	}
	client := vendorhttp.New(vendorhttp.Config{BaseURL: base, Header: header, Secrets: secrets}, opt)
	return &adapter{vendor: v, http: client, options: ch.Options, explain: func(string, ...any) {}}, nil
}

// open returns the provider of a channel. The provider implements Finder only if an operation of the
// vendor has find, and Canceller only if one has cancel.
func (v *Vendor) open(ch mediagate.Channel, opt providers.Options) (providers.Provider, error) {
	a, err := v.connect(ch, opt)
	if err != nil {
		return nil, err
	}
	var finds, stops bool
	for _, o := range v.operations {
		finds, stops = finds || o.about.Find, stops || o.about.Cancel
	}
	switch {
	case finds && stops:
		return struct {
			*adapter
			finder
			canceller
		}{a, finder{a}, canceller{a}}, nil
	case finds:
		return struct {
			*adapter
			finder
		}{a, finder{a}}, nil
	case stops:
		return struct {
			*adapter
			canceller
		}{a, canceller{a}}, nil
	default:
		return a, nil
	}
}

// adapter talks to one vendor account as the file describes. It is safe for concurrent use.
type adapter struct {
	vendor  *Vendor
	http    *vendorhttp.Client
	options map[string]string
	explain func(format string, args ...any) // reports what the file misses in an answer, for the faults of an example
}

// Close closes idle connections.
func (a *adapter) Close() { a.http.Close() }

// request is a job as the vendor's API expresses it.
type request struct {
	operation *operation
	path      string
	body      json.RawMessage
	scope     scope
}

// maxKept bounds the text that is kept of a request for later calls, in bytes. JobRef.State holds the
// text.
const maxKept = 256

// write returns the vendor's request for the job. Its error is of KindNotFound if the operation is
// unknown. All other errors are of KindInvalid, and name the field at fault if there is one.
func (v *Vendor) write(job mediagate.Job, options map[string]string) (*request, error) {
	o, ok := v.operations[job.Operation]
	if !ok {
		return nil, mediagate.Errorf(mediagate.KindNotFound, "operation %q is unknown here", job.Operation)
	}
	fields := o.about.Fields
	if o.about.Base { // n = 1 is permitted even if the operation does not list n
		if _, err := vendorhttp.DecodeBase(job, fields); err != nil {
			return nil, err
		}
		fields = append([]string{"n"}, fields...)
	}
	var members map[string]json.RawMessage
	if err := vendorhttp.DecodeParams(job.Params, &members, fields...); err != nil {
		return nil, err
	}
	if len(members) > 0 && len(fields) == 0 {
		return nil, vendorhttp.DecodeParams(job.Params, &struct{}{})
	}
	document, err := decode(job.Params)
	params, ok := document.(map[string]any)
	if err != nil || !ok {
		return nil, mediagate.Invalid("", "the stored request cannot be read")
	}
	r := &request{operation: o, scope: scope{
		model: job.Upstream, task: job.ExternalID, callback: job.CallbackURL, source: sourceOf(job.Source), options: options,
	}}
	if err := o.check(params, r.scope); err != nil {
		return nil, err
	}
	if err := r.write(params); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *request) write(params map[string]any) (err error) {
	o := r.operation
	kept, err := o.keep.run(params, r.scope)
	if err != nil {
		return writeError(err)
	}
	if len(kept) > 0 {
		r.scope.kept = string(textOf(kept[0]))
	}
	if len(r.scope.kept) > maxKept {
		return mediagate.Errorf(mediagate.KindInvalid, "what is kept of the request is longer than %d bytes", maxKept)
	}
	if r.path, r.body, err = o.submit.write(params, r.scope); err != nil {
		return writeError(err)
	}
	return nil
}

func writeError(err error) error {
	return mediagate.Errorf(mediagate.KindInvalid, "the request cannot be written: %w", err)
}

// check checks a request against the vendor's limits and refusals.
func (o *operation) check(params map[string]any, s scope) error {
	for _, l := range o.limits {
		switch field := params[l.field].(type) {
		case string:
			if l.length > 0 && utf8.RuneCountInString(field) > l.length {
				return mediagate.Invalid(l.field, "%s must be a string of at most %d characters", l.field, l.length)
			}
		case []any, nil:
			n := 0
			if list, ok := field.([]any); ok {
				n = len(list)
			}
			switch {
			case l.items > 0 && (n < l.least || n > l.items):
				return mediagate.Invalid(l.field, "%s must be an array of %d to %d items", l.field, l.least, l.items)
			case n < l.least:
				return mediagate.Invalid(l.field, "%s must be an array of at least %d items", l.field, l.least)
			}
		}
	}
	for i, r := range o.refusals {
		outputs, err := r.when.run(params, s)
		if err == nil && len(outputs) == 1 && (outputs[0] == false || outputs[0] == nil) {
			continue
		}
		refused := mediagate.Invalid(r.field, "%s", r.message)
		if failed, ok := errors.AsType[*programError](err); ok {
			err = &programError{fmt.Errorf("refuse[%d].when: %w", i, failed.cause)}
		} else if err == nil && len(outputs) != 1 {
			gave := "no output"
			if len(outputs) > 1 {
				gave = "several outputs"
			}
			err = &programError{fmt.Errorf("refuse[%d].when gave %s", i, gave)}
		}
		refused.Err = err
		return refused
	}
	return nil
}

// sourceOf returns the source of a job, as the value of $source.
func sourceOf(s *mediagate.Source) any {
	if s == nil {
		return nil
	}
	source := map[string]any{"own": s.Own, "id": orNull(s.VendorID), "job": orNull(s.Ref.JobID), "url": orNull(s.URL)}
	if c := s.Clip; c != nil {
		source["title"], source["lyrics"], source["tags"] = orNull(c.Title), orNull(c.Lyrics), orNull(c.Tags)
		source["seconds"] = c.Seconds
	}
	return source
}

// write returns the path and the body of a call.
func (s step) write(input any, in scope) (path string, body json.RawMessage, err error) {
	if path, err = s.path.render(input, in); err != nil || s.body == nil {
		return path, nil, err
	}
	outputs, err := s.body.run(input, in)
	if err != nil {
		return "", nil, err
	}
	if len(outputs) != 1 {
		return "", nil, errors.New("the body must be one JSON value")
	}
	body, err = s.body.encode(nil, outputs[0])
	return path, body, err
}

// call returns the step as a call of vendorhttp.
func (s step) call(effect vendorhttp.Effect, path string, body json.RawMessage) vendorhttp.Call {
	c := vendorhttp.Call{Effect: effect, Method: s.method, Path: path, Limits: vendorhttp.Limits{Bytes: maxAnswer}}
	if body != nil {
		c.Body = vendorhttp.JSON(body)
	}
	return c
}

// Submit sends the job once. providers.Provider lists the kinds of its errors.
func (a *adapter) Submit(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
	r, err := a.vendor.write(job, a.options)
	if err != nil {
		return mediagate.Submission{}, err
	}
	c := r.operation.submit.call(vendorhttp.Submits, r.path, r.body)
	c.SendBefore, c.Limits.Total = job.SendBefore, r.operation.about.Submit
	answer, err := a.http.Do(ctx, c)
	if err != nil {
		return mediagate.Submission{}, err
	}
	found, said := a.read("submit", r.operation.submit, answer, r.scope)
	ref := mediagate.JobRef{
		JobID: jobID(found.text(r.operation.id)), ExternalID: job.ExternalID, Operation: job.Operation, State: r.scope.kept,
	}
	if found.err != nil {
		err := mediagate.Errorf(mediagate.KindAmbiguous, "the vendor's answer cannot be read: %w", errBounds)
		return mediagate.Submission{}, err
	}
	if said.Done && ref.JobID == "" {
		a.explain("submit.id: the answer to the submit has no id")
	}
	said.Done = said.Done && ref.JobID != ""
	if err := a.http.ErrorOf(vendorhttp.Submits, answer, said); err != nil {
		return mediagate.Submission{}, err
	}
	return mediagate.Submission{Ref: ref}, nil
}

// jobID returns the text if it can be the id of a job, else "". An id must not change the path of a
// later call, so it contains neither / nor "..".
func jobID(text vendorhttp.Text) string {
	id := text.ID()
	if strings.Contains(id, "/") || strings.Contains(id, "..") {
		return ""
	}
	return id
}

// operation returns the operation of a reference. Its error does not prove that there is no job.
func (a *adapter) operation(ref mediagate.JobRef) (*operation, error) {
	o, ok := a.vendor.operations[ref.Operation]
	if !ok {
		return nil, mediagate.Errorf(mediagate.KindTransient, "operation %q is unknown here", ref.Operation)
	}
	return o, nil
}

func (a *adapter) scopeOf(ref mediagate.JobRef) scope {
	return scope{job: ref.JobID, task: ref.ExternalID, kept: ref.State, options: a.options}
}

// ask makes a call about a job and returns a reader for the answer. If the answer states an error, ask
// returns that error. If the answer says that the job has failed, that is no error of ask, whatever
// the HTTP status is.
func (a *adapter) ask(
	ctx context.Context, effect vendorhttp.Effect, name string, c step, input any, s scope,
) (*reader, error) {
	path, body, err := c.write(input, s)
	if err != nil {
		return nil, mediagate.Errorf(mediagate.KindTransient, "the call cannot be written: %w", err)
	}
	answer, err := a.http.Do(ctx, c.call(effect, path, body))
	if err != nil {
		return nil, err
	}
	r, said := a.read(name, c, answer, s)
	if r.failed {
		return r, r.err
	}
	return r, cmp.Or(r.err, a.http.ErrorOf(effect, answer, said))
}

var errNoJob = mediagate.Errorf(mediagate.KindNotFound, "the reference names no job")

// Poll asks for a job by the vendor's id.
func (a *adapter) Poll(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	if ref.JobID == "" {
		return mediagate.Report{}, errNoJob
	}
	o, err := a.operation(ref)
	if err != nil {
		return mediagate.Report{}, err
	}
	r, err := a.ask(ctx, vendorhttp.Reads, "poll", o.poll, nil, a.scopeOf(ref))
	if err != nil {
		return mediagate.Report{}, err
	}
	names, err := o.job.run(r.document, r.scope)
	switch {
	case o.job == nil, err == nil && len(names) == 0:
		return a.report(ctx, o, ref, r, false)
	case err != nil || textOf(names[0]) == "":
		return mediagate.Report{}, vendorhttp.ProtocolError("the answer names no job")
	case string(textOf(names[0])) != ref.JobID:
		return mediagate.Report{}, vendorhttp.ProtocolError("the answer is about another job")
	}
	return a.report(ctx, o, ref, r, true)
}

// finder implements providers.Finder.
type finder struct{ a *adapter }

// Ref returns the reference of a job, without the vendor's id.
func (f finder) Ref(job mediagate.Job) (mediagate.JobRef, error) {
	r, err := f.a.vendor.write(job, f.a.options)
	if err != nil {
		return mediagate.JobRef{}, err
	}
	return mediagate.JobRef{ExternalID: job.ExternalID, Operation: job.Operation, State: r.scope.kept}, nil
}

// Find asks for a job by our own id.
func (f finder) Find(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	o, err := f.a.operation(ref)
	if err != nil {
		return mediagate.Report{}, err
	}
	if !o.about.Find {
		err := mediagate.Errorf(mediagate.KindTransient, "jobs of operation %q cannot be found", ref.Operation)
		return mediagate.Report{}, err
	}
	r, err := f.a.ask(ctx, vendorhttp.Reads, "find", o.find, nil, f.a.scopeOf(ref))
	if err != nil {
		return mediagate.Report{}, err
	}
	if o.lookup.answer != nil {
		jobs := r.all(o.lookup.answer)
		if len(jobs) == 0 {
			return mediagate.Report{}, vendorhttp.ProtocolError("the answer does not say whether there is such a job")
		}
		if r.document = jobs[0]; r.document == nil {
			return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "the vendor has no such job")
		}
	}
	if string(r.text(o.lookup.task)) != ref.ExternalID {
		return mediagate.Report{}, vendorhttp.ProtocolError("the answer is about another job")
	}
	if ref.JobID = jobID(r.text(o.job)); ref.JobID == "" {
		return mediagate.Report{}, vendorhttp.ProtocolError("the answer names no job")
	}
	r.scope.job = ref.JobID
	return f.a.report(ctx, o, ref, r, true)
}

// canceller implements providers.Canceller.
type canceller struct{ a *adapter }

// Cancel stops a job at the vendor.
func (c canceller) Cancel(ctx context.Context, ref mediagate.JobRef) error {
	o, err := c.a.operation(ref)
	switch {
	case err != nil:
		return err
	case !o.about.Cancel:
		return mediagate.Errorf(mediagate.KindInvalid, "jobs of operation %q cannot be stopped", ref.Operation)
	case ref.JobID == "":
		return errNoJob
	}
	_, err = c.a.ask(ctx, vendorhttp.Stops, "cancel", o.cancel, nil, c.a.scopeOf(ref))
	return err
}
