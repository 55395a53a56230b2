package declared

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// Vendor is a vendor as a file describes it.
type Vendor struct {
	Name     string
	File     string
	Examples []Example

	line        int // position of the name in the file
	column      int
	base        string
	credentials []credential
	options     []string
	operations  map[string]*operation
	errors      errorTable
}

// Field is a field of the request that an operation takes, and its position in the file.
type Field struct{ Name, Position string }

// Fields returns the fields of all operations.
func (v *Vendor) Fields() (list []Field) {
	for _, name := range slices.Sorted(maps.Keys(v.operations)) {
		list = append(list, v.operations[name].fields...)
	}
	return list
}

// credential is a credential of a channel, and the header that carries it. In value, {} is replaced
// by the credential.
type credential struct{ name, header, value string }

// operation is one kind of job that the vendor can do.
type operation struct {
	about     providers.Operation
	fields    []Field
	limits    []limit
	refusals  []refusal
	keep      *expression
	submit    step
	id        *expression
	poll      step
	job       *expression
	status    *expression
	state     *expression
	progress  *expression
	states    map[string]mediagate.JobState
	moderated []string // those words of failed jobs that mean moderation
	failed    errorPaths
	result    result
	cancel    step
	find      step
	lookup    lookup
}

// step describes a call. The zero value is no call.
type step struct {
	method string
	path   *template
	body   *expression
	ok     *expression
	failed *expression // reports whether the answer says that the job has failed
}

// limit bounds a field of the request.
type limit struct {
	field                string
	length, least, items int
}

// refusal describes requests that the vendor's API cannot express.
type refusal struct {
	field, message string
	when           *expression
}

// result says where to find the files of a job that succeeded: in the answer to its own call, or
// without such a call in the answer to the poll.
type result struct {
	step
	files, songs, seconds, charge *expression
	unit                          string
}

// lookup reads the answer to a lookup by our own id.
type lookup struct{ answer, task *expression }

// errorPaths says where an answer states an error.
type errorPaths struct{ code, text, request *expression }

// errorTable says what errors mean.
type errorTable struct {
	errorPaths
	rows []row
}

// row is the meaning of an error. It matches an error that has one of the codes and one of the
// statuses, and for which the expression when is true.
type row struct {
	path     string   // of the row in the file
	codes    []string // normalized; empty: any
	statuses []int    // empty: any
	when     *expression
	meaning  vendorhttp.Meaning
	sure     bool   // the meaning also holds for calls that make no job
	message  string // of a job that this error ended
}

// kinds maps the words for kinds of errors in files.
var kinds = map[string]mediagate.Kind{
	"invalid": mediagate.KindInvalid, "moderated": mediagate.KindModerated, "credentials": mediagate.KindCredentials,
	"forbidden": mediagate.KindForbidden, "funds": mediagate.KindFunds, "throttled": mediagate.KindThrottled,
	"capacity": mediagate.KindCapacity, "no_job": mediagate.KindNotFound, "no_model": mediagate.KindNoModel,
	"unknown": mediagate.KindAmbiguous,
}

// states maps the words for states of a job in files.
var states = map[string]mediagate.JobState{
	"queued": mediagate.JobQueued, "running": mediagate.JobRunning, "done": mediagate.JobSucceeded,
	"failed": mediagate.JobFailed, "moderated": mediagate.JobFailed,
}

// normalize makes words equal that differ only by case and separators, such as TaskNotFound and
// task_not_found.
func normalize(word string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(word))
}

// fileName matches the valid names of vendors.
var fileName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,40}$`)

// Allow reports whether a file may name the host although the host is private, or although the file
// uses plain http.
type Allow func(host string) bool

// Read reads a file. Its error joins all faults, each as FILE:LINE:COLUMN. If the text is not YAML of
// the permitted form, Read reports only that.
func Read(file string, text []byte, allow Allow) (*Vendor, error) {
	r := &reading{file: file}
	document := r.document(text)
	if len(r.faults) > 0 {
		return nil, r.err()
	}
	f := document.object("!name", "!base_url", "!credentials", "options", "!operations", "errors", "!examples")
	v := &Vendor{
		Name: f["name"].text(), File: file, base: strings.TrimRight(f["base_url"].text(), "/"),
		options: f["options"].texts(), operations: map[string]*operation{},
	}
	v.line, v.column = f["name"].position()
	if name := f["name"]; name.isSet() && !fileName.MatchString(v.Name) {
		name.addFault("%q must be a letter from a to z, then letters, digits and -, 41 at most", v.Name)
	} else if base := file[strings.LastIndex(file, "/")+1:]; name.isSet() && base != v.Name+".yaml" {
		name.addFault("the file of %s must be named %s.yaml", v.Name, v.Name)
	}
	readBase(f["base_url"], v.base, allow)
	for _, e := range f["credentials"].entries() {
		c := readCredential(e)
		if slices.ContainsFunc(v.credentials, func(other credential) bool { return other.header == c.header }) {
			e.addFault("the header %s carries another", c.header)
		}
		v.credentials = append(v.credentials, c)
	}
	for _, e := range f["operations"].entries() {
		v.operations[e.key] = readOperation(e.value)
	}
	v.errors = readErrors(f["errors"])
	for _, item := range f["examples"].items() {
		v.Examples = append(v.Examples, readExample(item, v))
	}
	for _, e := range f["operations"].entries() {
		if !slices.ContainsFunc(v.Examples, func(x Example) bool { return x.operation == e.key }) {
			e.addFault("no example tries it")
		}
	}
	return v, r.err()
}

func readBase(at value, base string, allow Allow) {
	if !at.isSet() {
		return
	}
	u, err := url.Parse(base)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" ||
		u.Scheme != "https" && u.Scheme != "http" || slices.Contains(strings.Split(u.Path, "/"), "..") {
		at.addFault("must be an https URL of a host and a path, without user, query or ..")
		return
	}
	if (u.Scheme == "http" || isPrivate(u.Hostname())) && (allow == nil || !allow(u.Hostname())) {
		at.addFault("plain http and private hosts are possible only where outbound.allow has the host")
	}
}

// privateName matches host names that are not public, and addresses in numeric form.
var privateName = regexp.MustCompile(`\.(localhost|local|internal)$|\.[0-9x.]*$`)

// isPrivate reports whether the name of a host shows that the host is not public.
func isPrivate(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		a = a.Unmap()
		return !a.IsGlobalUnicast() || a.IsPrivate()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return !strings.Contains(host, ".") || privateName.MatchString(host)
}

func readCredential(e entry) credential {
	header, text, found := strings.Cut(e.text(), ":")
	text = strings.TrimSpace(text)
	token := regexp.MustCompile("^[A-Za-z][A-Za-z0-9-]*$")
	odd := func(r rune) bool { return r < ' ' || r > '~' }
	good := found && token.MatchString(header) && strings.Count(text, "{}") == 1 && !strings.ContainsFunc(text, odd)
	if e.isSet() && !good {
		e.addFault(`must be the header that carries it, with {} in its place, such as "Authorization: Bearer {}"`)
	}
	return credential{e.key, http.CanonicalHeaderKey(header), text}
}

func readOperation(v value) *operation {
	f := v.object("!media", "!fields", "idle", "base", "source", "on_unknown", "limits", "refuse", "keep", "callback",
		"!submit", "!poll", "!result", "cancel", "find")
	o := &operation{}
	var fields []string
	for _, item := range f["fields"].items() {
		fields = append(fields, item.text())
	}
	o.about = providers.Operation{
		Fields: fields, Idle: f["idle"].texts(), Media: f["media"].word("video", "image", "audio"),
		Base: f["base"].flag(), Source: f["source"].flag(), Callback: f["callback"].flag(),
		FailUnknown: f["on_unknown"].word(mediagate.OnUnknownPark, mediagate.OnUnknownFail) == mediagate.OnUnknownFail,
	}
	if fields == nil {
		fields = []string{}
	}
	if f["fields"].isSet() && len(fields) == 0 && !o.about.Source {
		f["fields"].addFault("an operation without a source takes fields")
	}
	o.checkFields(f["fields"], f["idle"])
	for _, e := range f["limits"].entries() {
		l := e.object("max_length", "min_items", "max_items")
		o.limits = append(o.limits, limit{e.key, l["max_length"].number(), l["min_items"].number(), l["max_items"].number()})
		if !slices.Contains(fields, e.key) {
			e.addFault("the operation takes no field of that name")
		}
	}
	for _, item := range f["refuse"].items() {
		r := item.object("!field", "!when", "!message")
		when := r["when"].expression()
		o.refusals = append(o.refusals, refusal{r["field"].text(), r["message"].text(), when})
		o.checkReads(r["when"], when)
	}
	o.keep = f["keep"].expression()
	o.checkReads(f["keep"], o.keep)

	submit := f["submit"].object("method", "!path", "!body", "ok", "!id", "timeout")
	o.submit, o.id = readStep(submit, http.MethodPost), submit["id"].expression()
	o.checkReads(submit["body"], o.submit.body)
	if o.submit.path != nil {
		o.checkReads(submit["path"], o.submit.path.holes...)
	}
	if o.about.Submit = 30 * time.Second; submit["timeout"].isSet() {
		o.about.Submit = submit["timeout"].duration()
	}
	if used := o.submit.body != nil && o.submit.body.uses["$callback"]; o.submit.body != nil && used != o.about.Callback {
		f["submit"].addFault("body uses $callback where callback is true, and only there")
	}

	poll := f["poll"].object("method", "!path", "body", "ok", "failed", "job", "!status", "!words",
		"state", "progress", "code", "text")
	o.poll, o.job = readStep(poll, http.MethodGet), poll["job"].expression()
	o.status, o.state, o.progress = poll["status"].expression(), poll["state"].expression(), poll["progress"].expression()
	o.failed = errorPaths{code: poll["code"].expression(), text: poll["text"].expression()}
	o.readWords(poll["words"])

	r := f["result"].object("method", "path", "body", "ok", "failed", "!files", "songs", "seconds", "charge", "unit")
	o.result = result{
		readStep(r, http.MethodGet), r["files"].expression(), r["songs"].expression(), r["seconds"].expression(),
		r["charge"].expression(), r["unit"].text(),
	}
	if r["charge"].isSet() != r["unit"].isSet() {
		f["result"].addFault("charge and unit go together")
	}
	if r["unit"].isSet() && mediagate.ChargedBy("0", o.result.unit) == nil {
		r["unit"].addFault("%q is no unit: a letter, then letters, digits, spaces, _ and -, 32 at most", o.result.unit)
	}
	if r["failed"].isSet() && !r["path"].isSet() {
		r["failed"].addFault("is for a result with a call of its own; poll has one, too")
	}
	o.cancel = readStep(f["cancel"].object("method", "!path", "body", "ok"), http.MethodPost)
	o.about.Cancel = f["cancel"].isSet()
	find := f["find"].object("method", "!path", "body", "ok", "answer", "!task")
	o.find, o.lookup = readStep(find, http.MethodGet), lookup{find["answer"].expression(), find["task"].expression()}
	if o.about.Find = f["find"].isSet(); o.about.Find && !poll["job"].isSet() {
		f["find"].addFault("poll.job must say where the job's id is")
	}
	return o
}

// checkFields reports fields that are listed twice, and idle fields that the operation lacks.
func (o *operation) checkFields(fields, idle value) {
	for i, item := range fields.items() {
		if slices.Contains(o.about.Fields[:i], o.about.Fields[i]) {
			item.addFault("%s is there twice", o.about.Fields[i])
		}
		line, column := item.position()
		o.fields = append(o.fields, Field{o.about.Fields[i], fmt.Sprintf("%s:%d:%d", item.r.file, line, column)})
	}
	for _, item := range o.about.Idle {
		if !slices.Contains(o.about.Fields, item) {
			idle.addFault("the operation takes no field %s", item)
		}
	}
}

// checkReads reports expressions that read a field of the request that the operation lacks.
func (o *operation) checkReads(at value, list ...*expression) {
	for _, e := range list {
		if e == nil {
			continue
		}
		for _, name := range e.reads {
			if isCount := o.about.Base && name == "n"; !isCount && !slices.Contains(o.about.Fields, name) {
				at.addFault("the operation takes no field %s", name)
			}
		}
	}
}

// readWords reads the vendor's words for the states of a job.
func (o *operation) readWords(v value) {
	o.states = map[string]mediagate.JobState{}
	f := v.object("queued", "running", "!done", "failed", "moderated")
	for _, name := range slices.Sorted(maps.Keys(states)) {
		for _, word := range f[name].texts() {
			if _, twice := o.states[word]; twice {
				f[name].addFault("the word %q is there twice", word)
			}
			o.states[word] = states[name]
		}
	}
	o.moderated = f["moderated"].texts()
}

// readStep reads a call. method is the default method of a call without a body.
func readStep(f map[string]value, method string) step {
	s := step{
		path: f["path"].template(), body: f["body"].expression(), ok: f["ok"].expression(), failed: f["failed"].expression(),
	}
	if s.method = method; f["method"].isSet() {
		s.method = f["method"].word(http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete)
	} else if s.body != nil {
		s.method = http.MethodPost
	}
	if s.body != nil && s.method == http.MethodGet {
		f["body"].addFault("a GET has no body")
	}
	return s
}

func readErrors(v value) errorTable {
	f := v.object("code", "text", "request_id", "kinds")
	t := errorTable{errorPaths: errorPaths{f["code"].expression(), f["text"].expression(), f["request_id"].expression()}}
	for _, item := range f["kinds"].items() {
		r := item.object("code", "status", "when", "!kind", "wait", "failure", "message")
		kind := r["kind"].word(slices.Sorted(maps.Keys(kinds))...)
		if r["wait"].isSet() && kind != "throttled" && kind != "capacity" {
			r["wait"].addFault("is for the kinds throttled and capacity only")
		}
		one := row{
			path: item.path, when: r["when"].expression(), message: r["message"].text(), sure: kind == "no_job",
			meaning: vendorhttp.Meaning{Kind: kinds[kind], Retry: r["wait"].duration(), Code: r["failure"].word(failures()...)},
		}
		for _, code := range r["code"].texts() {
			one.codes = append(one.codes, normalize(code))
		}
		for _, text := range r["status"].texts() {
			status, err := strconv.Atoi(text)
			if err != nil || status < 100 || status > 599 {
				r["status"].addFault("%q is no HTTP status", text)
			}
			one.statuses = append(one.statuses, status)
		}
		if one.codes == nil && one.statuses == nil && one.when == nil {
			item.addFault("needs a code, a status or an expression in when")
		}
		t.rows = append(t.rows, one)
	}
	return t
}

// failures returns the failure codes of tasks whose request is at fault.
func failures() []string {
	return []string{
		string(mediagate.CodeInvalidParameters), string(mediagate.CodeContentPolicy), string(mediagate.CodeImageProcessing),
	}
}
