package declared

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
)

// These constants are the task id of an example and the address for its callbacks.
const (
	exampleTask     = "task_example"
	exampleCallback = "https://gateway.example.com/callbacks/example"
)

// Example is a test of a file. It holds a request, the calls that the vendor must then receive, the
// vendor's answers, and the task that the client must see in the end.
type Example struct {
	at        value
	operation string
	job       mediagate.Job
	find      bool // the answer to the submit counts as lost, and the next call is find
	cancel    bool // the next call is cancel
	calls     []exampleCall
	task      map[string]value
}

// exampleCall is a call and its answer. Bodies are JSON.
type exampleCall struct {
	method, path, body string
	status             int
	answer             string
}

func readExample(v value, vendor *Vendor) Example {
	f := v.object("!operation", "model", "!request", "callback", "source", "find", "cancel", "!calls", "!task")
	x := Example{at: v, operation: f["operation"].text(), find: f["find"].flag(), cancel: f["cancel"].flag()}
	x.task = f["task"].object("status", "progress", "error", "kind", "files", "songs", "seconds", "charge")
	switch o := vendor.operations[x.operation]; {
	case o == nil && f["operation"].isSet():
		f["operation"].addFault("there is no operation %s", x.operation)
	case o == nil:
	case x.find && !o.about.Find:
		f["find"].addFault("operation %s has no find", x.operation)
	case x.cancel && !o.about.Cancel:
		f["cancel"].addFault("operation %s has no cancel", x.operation)
	}
	x.job = mediagate.Job{
		TaskID: exampleTask, ExternalID: exampleTask, Operation: x.operation, Upstream: f["model"].text(),
		Params: []byte(canonicalJSON(f["request"].document())), Source: readSource(f["source"]),
	}
	if f["callback"].flag() {
		x.job.CallbackURL = exampleCallback
	}
	for _, item := range f["calls"].items() {
		c := item.object("!method", "!path", "body", "!answer")
		answer := c["answer"].object("status", "body")
		one := exampleCall{method: c["method"].text(), path: c["path"].text(), status: http.StatusOK}
		if c["body"].isSet() {
			one.body = canonicalJSON(c["body"].document())
		}
		if answer["status"].isSet() {
			one.status = min(max(answer["status"].number(), 200), 599)
		}
		document := answer["body"].document()
		if text, isText := document.(string); isText { // not JSON, such as the error page of a proxy
			one.answer = text
		} else if answer["body"].isSet() {
			one.answer = canonicalJSON(document)
		}
		x.calls = append(x.calls, one)
	}
	return x
}

// readSource reads the source of an example's job.
func readSource(v value) *mediagate.Source {
	f := v.object("own", "id", "job", "url", "seconds", "title", "lyrics", "tags")
	if !v.isSet() {
		return nil
	}
	seconds, _ := strconv.ParseFloat(f["seconds"].text(), 64)
	return &mediagate.Source{
		Own: f["own"].flag(), VendorID: f["id"].text(), URL: f["url"].text(), Ref: mediagate.JobRef{JobID: f["job"].text()},
		Clip: &mediagate.Clip{
			Seconds: seconds, Title: f["title"].text(), Lyrics: f["lyrics"].text(), Tags: f["tags"].text(),
		},
	}
}

// canonicalJSON returns the JSON text of a document. Equal documents have equal texts.
func canonicalJSON(document any) string {
	text, err := json.Marshal(document)
	if err != nil {
		return ""
	}
	return string(text)
}

// Test runs the examples without a network. Its error joins all differences, each as
// FILE:LINE:COLUMN.
func (v *Vendor) Test(ctx context.Context) error {
	r := &reading{file: v.File}
	for _, x := range v.Examples {
		x.at.r = r
		v.test(ctx, x)
	}
	return r.err()
}

func (v *Vendor) test(ctx context.Context, x Example) {
	vendor := &scriptedVendor{calls: x.calls, pipe: make(chan net.Conn), closed: make(chan struct{})}
	//nolint:gosec // its one client is the adapter
	server := &http.Server{Handler: vendor, ErrorLog: log.New(io.Discard, "", 0)}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(vendor) })
	defer func() {
		_ = server.Close()
		serving.Wait()
	}()
	faults := len(x.at.r.faults)
	var reasons []string
	got, err := v.run(ctx, x, vendor, func(format string, args ...any) {
		if reason := fmt.Sprintf(format, args...); !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	})
	defer func() {
		for _, reason := range reasons {
			if len(x.at.r.faults) > faults {
				x.at.addFault("%s", reason)
			}
		}
	}()
	for _, text := range vendor.wrong {
		x.at.addFault("%s", text)
	}
	if err != nil {
		x.at.addFault("%s", err)
		return
	}
	if n := len(vendor.calls) - vendor.made; n > 0 && len(vendor.wrong) == 0 {
		why := ""
		if failure, failed := got["error"]; failed {
			why = ": the task failed with " + canonicalJSON(failure)
		}
		x.at.addFault("calls: %d of %d were not made%s", n, len(vendor.calls), why)
	}
	for name, want := range x.task {
		if made, wanted := canonicalJSON(got[name]), canonicalJSON(want.document()); want.isSet() && made != wanted {
			want.r, want.path = x.at.r, x.at.path+".task."+name
			want.addFault("is %s, want %s", made, wanted)
		}
	}
}

// run submits the job of an example, and looks it up or cancels it if the example says so. Then it
// polls the job until it has ended or the example has no more answers, and returns the task. It calls
// explain for each value that the file did not find in an answer.
func (v *Vendor) run(
	ctx context.Context, x Example, vendor *scriptedVendor, explain func(format string, args ...any),
) (map[string]any, error) {
	credentials := map[string]string{}
	for _, c := range v.credentials {
		credentials[c.name] = "example"
	}
	a, err := v.connect(mediagate.Channel{
		Name: "example", Provider: v.Name, BaseURL: "http://vendor.example", Credentials: mediagate.Secrets(credentials),
	}, providers.Options{Dial: vendor.dial})
	if err != nil {
		return nil, err
	}
	defer a.Close()
	a.explain = explain
	if _, err := v.write(x.job, nil); err != nil {
		return taskView(mediagate.Report{}, err), fileFault(v, x.job, err)
	}
	submission, err := a.Submit(ctx, x.job)
	report := mediagate.Report{State: mediagate.JobQueued, Percent: -1, Ref: submission.Ref}
	call := "find"
	if x.find && (err == nil || mediagate.Is(err, mediagate.KindAmbiguous)) {
		if report.Ref, err = (finder{a}).Ref(x.job); err == nil {
			report, err = finder{a}.Find(ctx, report.Ref)
		}
	}
	if x.cancel && err == nil {
		call, err = "cancel", canceller{a}.Cancel(ctx, report.Ref)
	}
	if e, ok := errors.AsType[*mediagate.Error](err); ok && e.Kind == mediagate.KindTransient {
		return nil, fmt.Errorf("%s: %s", call, e.Message)
	}
	ref, left := report.Ref, func() bool { return vendor.made < len(x.calls) }
	for made := -1; err == nil && (report.Outcome == nil || report.Incomplete) && left() && vendor.made > made; {
		made = vendor.made
		report, err = a.Poll(ctx, ref)
		if e, ok := errors.AsType[*mediagate.Error](err); ok && e.Kind == mediagate.KindTransient {
			explain("poll: %s", e.Message)
			if left() {
				err = nil // poll again
			}
		}
	}
	return taskView(report, err), nil
}

// fileFault returns the reason why a request cannot be written if the file is at fault, and nil if the
// request is at fault.
func fileFault(v *Vendor, job mediagate.Job, err error) error {
	if failed, ok := errors.AsType[*programError](err); ok {
		return fmt.Errorf("operations.%s: the request cannot be written: %w", job.Operation, failed.cause)
	}
	if errors.Is(err, errBounds) || errors.Is(err, errNoPath) {
		return fmt.Errorf("operations.%s: the request cannot be written: %w", job.Operation, err)
	}
	return nil
}

// taskView returns those members of the client's task that the vendor's answers decide. If err is not
// nil, taskView adds the kind of the error, in the word that files use.
func taskView(report mediagate.Report, err error) map[string]any {
	task := map[string]any{"status": string(mediagate.StatusProcessing)}
	fail := func(code, message string) {
		task["status"], task["error"] = string(mediagate.StatusFailed), map[string]any{"code": code, "message": message}
	}
	if e, ok := errors.AsType[*mediagate.Error](err); ok {
		for word, kind := range kinds {
			if kind == e.Kind {
				task["kind"] = word
			}
		}
		if e.Kind == mediagate.KindInvalid || e.Kind == mediagate.KindModerated {
			if e.Code == "" {
				e.Code = string(mediagate.CodeInvalidParameters)
			}
			fail(e.Code, e.Message)
		}
		return task
	}
	if report.Percent >= 0 {
		task["progress"] = report.Percent
	}
	out := report.Outcome
	switch {
	case out == nil, report.Incomplete:
		return task
	case out.Failure != nil:
		fail(string(out.Failure.Code), out.Failure.Message)
		return task
	}
	task["status"] = string(mediagate.StatusCompleted)
	var files []any
	for _, m := range out.Media {
		file := map[string]any{"url": m.URL}
		for name, text := range map[string]string{"role": string(m.Role), "name": m.Name, "type": m.MimeType} {
			if text != "" {
				file[name] = text
			}
		}
		if m.Index > 0 {
			file["index"] = m.Index
		}
		if m.Duration > 0 {
			file["seconds"] = m.Duration
		}
		files = append(files, file)
	}
	task["files"] = files
	if out.Made != nil {
		text, _ := json.Marshal(out.Made.Clips)
		task["songs"], _ = decode(text)
	}
	if out.Seconds > 0 {
		task["seconds"] = out.Seconds
	}
	if c := out.VendorCharge; c != nil {
		task["charge"] = map[string]any{"amount": c.Amount, "unit": c.Unit}
	}
	return task
}

// scriptedVendor plays the vendor of an example. It compares each call with the call that the
// example expects, and sends the example's answer. It is also the listener of its HTTP server, whose
// connections are pipes.
type scriptedVendor struct {
	calls  []exampleCall
	made   int
	wrong  []string
	pipe   chan net.Conn
	closed chan struct{}
}

func (p *scriptedVendor) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.pipe <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept returns the vendor's end of the next connection.
func (p *scriptedVendor) Accept() (net.Conn, error) {
	select {
	case c := <-p.pipe:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (p *scriptedVendor) Close() error {
	close(p.closed)
	return nil
}

// Addr returns a placeholder.
func (p *scriptedVendor) Addr() net.Addr { return &net.UnixAddr{Name: "example", Net: "pipe"} }

// ServeHTTP compares a call with the example's next call and answers it.
func (p *scriptedVendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil || p.made >= len(p.calls) {
		p.wrong = append(p.wrong, fmt.Sprintf("calls: the vendor gets one more, %s %s", r.Method, r.URL.RequestURI()))
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	want := p.calls[p.made]
	p.made++
	body := string(text)
	if document, err := decode(text); err == nil {
		body = canonicalJSON(document)
	}
	if got, wanted := r.Method+" "+r.URL.RequestURI(), want.method+" "+want.path; got != wanted {
		p.wrong = append(p.wrong, fmt.Sprintf("calls[%d]: is %s, want %s", p.made-1, got, wanted))
	}
	if body != want.body {
		p.wrong = append(p.wrong, fmt.Sprintf("calls[%d].body: is %s, want %s", p.made-1,
			cmp.Or(body, "no body"), cmp.Or(want.body, "no body")))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(want.status)
	_, _ = io.WriteString(w, want.answer)
}
