package declared

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// reader evaluates expressions on an answer. An expression that fails finds nothing. err is set if
// an expression exceeded its limits.
type reader struct {
	document any
	scope    scope
	failed   bool // the answer says that the job has failed
	err      error
}

func (r *reader) all(e *expression) []any {
	outputs, err := e.run(r.document, r.scope)
	if errors.Is(err, errBounds) {
		r.err = mediagate.Errorf(mediagate.KindTransient, "the vendor's answer cannot be read: %w", err)
	}
	return outputs
}

func (r *reader) first(e *expression) any {
	if outputs := r.all(e); len(outputs) > 0 {
		return outputs[0]
	}
	return nil
}

func (r *reader) text(e *expression) vendorhttp.Text { return textOf(r.first(e)) }

func (r *reader) isTrue(e *expression) bool {
	v := r.first(e)
	return v != nil && v != false
}

// read reads the answer to a call. The Reading holds what vendorhttp needs to decide what the answer
// proves. The reader serves all further expressions.
func (a *adapter) read(name string, c step, answer vendorhttp.Answer, s scope) (*reader, vendorhttp.Reading) {
	document, err := decode(answer.Body)
	members, isObject := document.(map[string]any)
	s.call, s.status, s.headers = name, answer.Status, map[string]any{}
	for name := range answer.Header {
		s.headers[strings.ToLower(name)] = answer.Header.Get(name)
	}
	r := &reader{document: members, scope: s}
	table := a.vendor.errors
	row := table.find(r, table.code)
	said := vendorhttp.Reading{
		FromVendor: isObject && err == nil, Meaning: row.meaning, ForAllCalls: row.sure,
		Code: r.scope.code, Text: string(r.text(table.text)), RequestID: string(r.text(table.request)),
	}
	good := r.scope.code == ""
	if c.ok != nil {
		good = r.isTrue(c.ok)
	}
	said.Done = good && answer.Status < http.StatusMultipleChoices
	r.failed = said.FromVendor && r.isTrue(c.failed)
	// The answer to a successful cancel may be empty.
	said.FromVendor = said.FromVendor || name == "cancel" && said.Done && len(bytes.TrimSpace(answer.Body)) == 0
	switch known := row.meaning.Kind != mediagate.KindInternal; {
	case known && answer.Status >= http.StatusInternalServerError:
		a.explain("%s: does not count: an answer of HTTP %d proves nothing", row.path, answer.Status)
	case known && !said.FromVendor:
		a.explain("%s: does not count: the answer is no JSON object", row.path)
	}
	return r, said
}

// find returns the row for the error that an answer states, and puts the error's code into the
// scope. If the answer has several codes, find uses the first code that a row names, or else the
// first code.
func (t errorTable) find(r *reader, code *expression) row {
	r.scope.code = ""
	for _, output := range r.all(code) {
		text := string(textOf(output))
		if text != "" && slices.ContainsFunc(t.rows, func(r row) bool { return slices.Contains(r.codes, normalize(text)) }) {
			r.scope.code = text
			break
		}
		r.scope.code = cmp.Or(r.scope.code, text)
	}
	for _, one := range t.rows {
		if (len(one.codes) == 0 || slices.Contains(one.codes, normalize(r.scope.code))) &&
			(len(one.statuses) == 0 || slices.Contains(one.statuses, r.scope.status)) && (one.when == nil || r.isTrue(one.when)) {
			return one
		}
	}
	return row{}
}

// report returns the report on a job, from the answer to a poll or a find.
func (a *adapter) report(
	ctx context.Context, o *operation, ref mediagate.JobRef, r *reader, named bool,
) (mediagate.Report, error) {
	report := mediagate.Report{Ref: ref, Percent: -1, Named: named}
	report.State, report.Word = a.http.State(o.states, r.text(o.status))
	moderated := slices.Contains(o.moderated, report.Word)
	if told := string(r.text(o.state)); told != "" {
		report.State, moderated = cmp.Or(states[told], mediagate.JobUnknown), told == "moderated"
		report.Word = cmp.Or(report.Word, told)
	}
	if report.State == mediagate.JobUnknown && report.Word == "" {
		a.explain("poll.status: finds no word in the answer")
	} else if report.State == mediagate.JobUnknown {
		a.explain("poll.words: %s is in no list of words", report.Word)
	}
	if n, err := strconv.ParseFloat(string(r.text(o.progress)), 64); err == nil && n >= 0 {
		report.Percent = int(min(n, 99))
	}
	if r.failed {
		report.State = mediagate.JobFailed
	}
	var err error
	switch report.State {
	case mediagate.JobSucceeded:
		var out *mediagate.Outcome
		var whole bool
		if out, whole, err = a.outcome(ctx, o, r); err == nil && out.Failure == nil {
			report.Offer(out, whole)
		} else if err == nil {
			report.State, report.Outcome = mediagate.JobFailed, out
		}
	case mediagate.JobFailed:
		report.Outcome = a.failure(o, r, moderated)
	default: // the job has not ended, or its state is unknown
	}
	if err = cmp.Or(err, r.err); err != nil {
		return mediagate.Report{}, err
	}
	return report, nil
}

// failure returns the outcome of a failed job.
func (a *adapter) failure(o *operation, r *reader, moderated bool) *mediagate.Outcome {
	table := a.vendor.errors
	r.scope.call = "job"
	row := table.find(r, cmp.Or(o.failed.code, table.code))
	if moderated {
		row.meaning = vendorhttp.Meaning{Kind: mediagate.KindModerated}
	}
	f := vendorhttp.FailureOf(row.meaning)
	f.Message = cmp.Or(row.message, f.Message)
	text := string(r.text(cmp.Or(o.failed.text, table.text)))
	if normalize(text) != normalize(r.scope.code) && text != "" {
		return a.http.Failed(f, text)
	}
	out := a.http.Failed(f, "")
	out.VendorText = a.http.Clean(r.scope.code)
	return out
}

// outcome returns the outcome of a job that succeeded, and whether the result is complete: each song
// has an id, and each file has a link and a known role. If the result has its own call, outcome makes
// the call, and the answer may say that the job has failed.
func (a *adapter) outcome(ctx context.Context, o *operation, r *reader) (*mediagate.Outcome, bool, error) {
	out, whole := &mediagate.Outcome{}, true
	if o.result.path != nil {
		r.scope.poll = r.document
		if _, err := o.result.path.render(r.document, r.scope); errors.Is(err, errNoPath) {
			return out, false, nil // the answer does not say where the files are
		}
		var err error
		if r, err = a.ask(ctx, vendorhttp.Reads, "result", o.result.step, r.document, r.scope); err != nil {
			return nil, false, err
		}
		if r.failed {
			return a.failure(o, r, false), true, r.err
		}
	}
	out.Seconds = r.text(o.result.seconds).Seconds()
	out.VendorCharge = mediagate.ChargedBy(r.text(o.result.charge).Decimal(), o.result.unit)
	if o.result.songs != nil {
		out.Made = &mediagate.Made{}
	}
	for _, song := range r.all(o.result.songs) {
		clip := clipOf(song)
		out.Made.Clips, whole = append(out.Made.Clips, clip), whole && clip.ID != ""
	}
	count := map[mediagate.Role]int{}
	for _, file := range r.all(o.result.files) {
		media, ok := mediaOf(file, count)
		if media.URL == "" {
			a.explain("result.files: a file has no link as its url")
		} else if !ok {
			a.explain("result.files: %s is no role; known: %s", media.Role, roleNames())
		}
		if whole = whole && ok; ok {
			out.Media = append(out.Media, media)
		}
	}
	return out, whole, r.err
}

// mediaOf reads one file of a result. It returns false if the file has no link or an unknown role.
// The index is the one that the file states, or else one more than that of the previous file of the
// same role, from 0.
func mediaOf(v any, count map[mediagate.Role]int) (mediagate.Media, bool) {
	file, _ := v.(map[string]any)
	m := mediagate.Media{
		URL: textOf(file["url"]).Link(), Role: mediagate.Role(textOf(file["role"])), Name: textOf(file["name"]).ID(),
		MimeType: textOf(file["type"]).ID(), Duration: textOf(file["seconds"]).Seconds(),
	}
	m.Index = count[m.Role]
	if n, err := strconv.Atoi(string(textOf(file["index"]))); err == nil && n >= 0 && n < 1000 {
		m.Index = n
	}
	count[m.Role] = m.Index + 1
	return m, m.URL != "" && slices.Contains(roles, m.Role)
}

// roles are the roles that a file of a result may have.
var roles = []mediagate.Role{
	mediagate.RoleMain, mediagate.RoleCover, mediagate.RoleWAV, mediagate.RoleFilm, mediagate.RoleGrid, mediagate.RoleStem,
}

// roleNames lists the roles for messages.
func roleNames() string {
	var names []string
	for _, role := range roles[1:] { // the first one has no name
		names = append(names, string(role))
	}
	return strings.Join(names, ", ")
}

// clipOf reads a song of a result.
func clipOf(v any) mediagate.Clip {
	song, _ := v.(map[string]any)
	return mediagate.Clip{
		ID: textOf(song["id"]).ID(), Title: textOf(song["title"]).Prose(), Lyrics: textOf(song["lyrics"]).Prose(),
		Tags: textOf(song["tags"]).Prose(), CreatedAt: textOf(song["created_at"]).Moment(),
		Seconds: textOf(song["seconds"]).Seconds(), State: textOf(song["state"]).Prose(),
	}
}
