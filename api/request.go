package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/catalog/price"
)

// validated is a request that the caller may make, at the prices of its group.
type validated struct {
	catalog.Request
	endpoint string // the path that takes it in our own words
	model    string // its id, or the alias by which it was named
	kind     mediagate.Type
	pictures []picture // that came within it
	sources  []mediagate.TaskFile
	group    string // on whose terms it is
	capacity int    // of the group
}

// hold is what the request costs at most.
func (o validated) hold() mediagate.Micros { return price.Total(o.Charges) }

// validate checks a body in the contract's sequence: model known, model allowed,
// validation, of which the last part is that a vendor can be asked for it.
func (s *Server) validate(c *call, from order) (validated, error) {
	operation, err := c.models.catalog.Find(from.endpoint, from.body)
	if err != nil {
		return validated{}, err
	}
	model := operation.Model
	if model.Uncataloged && !slices.Contains(c.caller.key.Models, model.ID) {
		return validated{}, catalog.UnknownModel(model.ID)
	}
	if limit := operation.MaxBody; int64(from.size) > limit {
		return validated{}, errTooLarge(limit)
	}
	rights := s.rightsOf(c)
	if !rights.allow(model.ID, model.Canonical) {
		return validated{}, mediagate.Errorf(mediagate.KindForbidden, "this API key may not use model %s", mediagate.Quote(model.ID))
	}
	request, err := accept(operation, from)
	if err != nil {
		return validated{}, err
	}
	// The room is for media: what else a large body brings would be parsed and
	// written anew for each route, and stay in the task's row.
	if operation.MaxBody > bodyLimit && len(request.Params) > bodyLimit {
		return validated{}, mediagate.Errorf(mediagate.KindTooLarge, "the body must be at most %d bytes beside the media in it", bodyLimit)
	}
	o := validated{Request: request.WithFactor(rights.factor), endpoint: from.endpoint, model: model.ID, kind: model.Type, group: rights.group, capacity: rights.capacity}
	if o.pictures, err = pictures(request.Uploads); err != nil {
		return validated{}, err
	}
	if from.endpoint == catalog.ModalEndpoint {
		if err := s.noTaskFiles(request); err != nil {
			return validated{}, err
		}
		o.Params, err = s.resumed(c, request)
		return o, err
	}
	if o.Plan.Source, err = s.source(c, request.Source); err != nil {
		return validated{}, err
	}
	if o.sources, err = s.taskFiles(c, request); err != nil {
		return validated{}, err
	}
	turn, err := s.cfg.Limits.Quotes.Acquire(c.ctx, c.tenant(), 1)
	if err != nil {
		return validated{}, c.noRoom(s.cfg.Limits.Quotes, "the requests that are judged")
	}
	defer turn.Release()
	if o.Plan, o.Charges, err = s.express(c.ctx, c.models.routes, model.ID, o); err != nil {
		return validated{}, err
	}
	return o, nil
}

// accept judges the body once it is in our words. What is wrong with it is said of the
// fields that the client wrote.
func accept(operation *catalog.Operation, from order) (catalog.Request, error) {
	if from.translate == nil {
		if err := operation.Known(from.strict); err != nil {
			return catalog.Request{}, err
		}
		return operation.Accept(from.body)
	}
	body, sent, err := from.translate(operation, from.body)
	if err != nil {
		return catalog.Request{}, err
	}
	request, err := operation.Accept(body)
	if err != nil {
		return catalog.Request{}, asSent(err, sent)
	}
	if request.Folded == nil {
		request.Folded = map[string]string{}
	}
	maps.Copy(request.Folded, sent)
	return request, nil
}

// rights are what a call may use, and at which prices.
type rights struct {
	group    string
	factor   price.Factor
	capacity int        // of the group
	lists    [][]string // of patterns: the group's and the key's
}

// rightsOf are those of the caller's key and group. A group that is no setting
// gives none.
func (s *Server) rightsOf(c *call) rights {
	name := c.caller.group()
	g, ok := s.groups[name]
	if !ok {
		return rights{}
	}
	return rights{group: name, factor: g.factor, capacity: g.capacity, lists: [][]string{g.models, c.caller.key.Models}}
}

// allow reports whether a model may be used that has one of the names.
func (r rights) allow(names ...string) bool {
	for _, patterns := range r.lists {
		if !matchesAny(patterns, names...) {
			return false
		}
	}
	return r.lists != nil
}

// matchesAny reports whether one of the patterns matches one of the names; no
// pattern at all matches everything.
func matchesAny(patterns []string, names ...string) bool {
	if len(patterns) == 0 {
		return true
	}
	for _, pattern := range patterns {
		for _, name := range names {
			if matches(pattern, name) {
				return true
			}
		}
	}
	return false
}

// matches reports whether the pattern, in which * stands for any text,
// matches the whole name.
func matches(pattern, name string) bool {
	begin, rest, some := strings.Cut(pattern, "*")
	if !some {
		return pattern == name
	}
	// Clients write patterns, and each call compares all of its key's with all
	// models: what cannot fit is known without a look at its pieces.
	if len(pattern)-strings.Count(pattern, "*") > len(name) {
		return false
	}
	name, ok := strings.CutPrefix(name, begin)
	if !ok {
		return false
	}
	for {
		part, after, more := strings.Cut(strings.TrimLeft(rest, "*"), "*")
		if !more {
			return strings.HasSuffix(name, part)
		}
		_, left, found := strings.Cut(name, part)
		if !found {
			return false
		}
		name, rest = left, after
	}
}

// Expression is what a route's adapter says of a request.
type Expression struct {
	Sync   bool     // the submit call itself brings the result
	Fields []string // of a request that the route takes
	// Unserved says that no channel of ours serves the route. One may come while
	// the task waits.
	Unserved bool
	// Err says why the route cannot express the request: KindInvalid, naming
	// field and rule, never what the client wrote. Of any other kind it is a
	// fault of ours, which says nothing of the request.
	Err error
}

// express asks each route of the request whether it can express it, and leaves
// those out that cannot, with the reason. So what a vendor could not be told is
// refused before money is held, and a task has only routes that it can take.
//
// Where any route has a channel, one of those must be able to: a request that
// only routes without a channel could take would wait for an account that
// nobody has. Beside one that can, and where no route has a channel, they stay.
//
// A route that would make another thing than is asked for is left out beside one
// that makes what is: it stands in where there is no other, at its own price.
//
// When no route is left, the error is the reason of the nearest one: the route
// that takes most of the request's fields, and of equals the last one of the
// provider that comes first. Its routes stand behind others to do what those
// cannot; those of another provider stand there to do the same. Where any route
// has a channel, those without are not looked at for it. A route whose adapter
// failed is left out while another can; when none can, it is a fault: nobody
// knows whether the request was to blame.
func (s *Server) express(ctx context.Context, routes Routes, model string, r validated) (plan mediagate.Plan, charges []mediagate.Charge, err error) {
	plan, charges = r.Plan, r.Charges
	plan.Routes, plan.Skipped = nil, nil
	params, fields, err := withMedia(r.Request)
	if err != nil {
		return plan, charges, err
	}
	if params, err = withComing(params, r.sources); err != nil {
		return plan, charges, err
	}
	said := make([]Expression, len(r.Plan.Routes))
	served := false // any of them
	for i, route := range r.Plan.Routes {
		said[i] = routes.Express(model, route, mediagate.Job{Params: params, Source: plan.Source})
		served = served || !said[i].Unserved
	}
	exact := false // any that counts makes what is asked for
	for i, e := range said {
		exact = exact || e.Err == nil && (!served || !e.Unserved) && r.Instead[i] == nil
	}
	var obstacle, fault error
	most, nearest, possible := -1, "", false
	for i, route := range r.Plan.Routes {
		e := said[i]
		counts, instead := !served || !e.Unserved, r.Instead[i]
		if e.Err == nil && (instead == nil || !exact) {
			route.Sync = e.Sync
			plan.Routes = append(plan.Routes, route)
			possible = possible || counts
			if instead != nil {
				charges = instead
			}
			continue
		}
		skipped := mediagate.SkippedRoute{Provider: route.Provider, Upstream: route.Upstream}
		if e.Err == nil {
			skipped.Reason = "it makes another thing than is asked for"
		} else if mediagate.Is(e.Err, mediagate.KindInvalid) {
			refusal := domainError(e.Err)
			skipped.Reason = nameField(refusal.Message, refusal.Param)
			if takes := countIn(fields, e.Fields); counts && (takes > most || takes == most && route.Provider == nearest) {
				most, nearest, obstacle = takes, route.Provider, e.Err
			}
		} else {
			skipped.Reason = "its adapter failed"
			fault = cmp.Or(fault, fmt.Errorf("asking %s for %s: %w", route.Provider, route.Upstream, e.Err))
			s.log.ErrorContext(ctx, "a route was left out, its adapter failed",
				"provider", route.Provider, "upstream", route.Upstream, "error", e.Err)
		}
		plan.Skipped = append(plan.Skipped, skipped)
	}
	switch {
	case possible:
		return plan, charges, nil
	case fault != nil:
		return plan, charges, &mediagate.Error{Kind: mediagate.KindInternal, Message: "no route can be asked", Err: fault}
	case obstacle != nil:
		return plan, charges, asSent(obstacle, r.Folded)
	default:
		return plan, charges, mediagate.Errorf(mediagate.KindInternal, "%s has no route", model)
	}
}

// asSent is a refusal that names what the client sent, where what is refused
// came of another field.
func asSent(refusal error, folded map[string]string) error {
	e := domainError(refusal)
	field, _, _ := strings.Cut(e.Param, "[")
	sent, ok := folded[field]
	if !ok || sent == field {
		return refusal
	}
	return mediagate.Invalid(sent, "%s: %s", sent, nameField(e.Message, e.Param)).Because(e.Code)
}

// withMedia are the parameters as a job will have them, and their names.
func withMedia(r catalog.Request) (json.RawMessage, map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(r.Params, &fields); err != nil {
		return nil, nil, mediagate.Errorf(mediagate.KindInternal, "the accepted parameters are no object: %w", err)
	}
	if len(r.Uploads) == 0 {
		return r.Params, fields, nil
	}
	for name := range r.Uploads {
		fields[name] = json.RawMessage(`"` + mediagate.UploadComing + `"`)
	}
	params, err := json.Marshal(fields)
	if err != nil {
		return nil, nil, mediagate.Errorf(mediagate.KindInternal, "the accepted parameters cannot be written: %w", err)
	}
	return params, fields, nil
}

func countIn(fields map[string]json.RawMessage, names []string) (n int) {
	for _, name := range names {
		if _, ok := fields[name]; ok {
			n++
		}
	}
	return n
}

// source finds what the client names that an earlier task of the account made,
// with the job that made it; nil for none. Its errors are the client's, but for
// a database that is away: they name the field and say what is wrong with what
// it names, alike for tasks that are unknown and someone else's.
func (s *Server) source(c *call, named *catalog.Source) (*mediagate.Source, error) {
	if named == nil {
		return nil, nil
	}
	found, err := s.findSource(c, named)
	if err != nil {
		return nil, err
	}
	job, err := s.cfg.Store.Producer(c.ctx, found.TaskID)
	switch {
	case mediagate.Is(err, mediagate.KindNotFound):
		return nil, unusable(named, "names a task whose job is not known any more")
	case err != nil:
		return nil, err
	}
	found.Provider, found.Channel, found.Fingerprint, found.Ref = job.Provider, job.Channel, job.Fingerprint, job.Ref
	if found.Fields, err = json.Marshal(named.Fields); err != nil {
		return nil, mediagate.Errorf(mediagate.KindInternal, "the fields of a source cannot be written: %w", err)
	}
	return &found, nil
}

// findSource reads the task that the source is of. There are several ways to
// name one, each a case.
func (s *Server) findSource(c *call, named *catalog.Source) (mediagate.Source, error) {
	switch {
	case named.Rule.Button != "":
		task, err := s.sourceTask(c, named, named.Task)
		if err != nil {
			return mediagate.Source{}, err
		}
		return buttonOf(&task, named)
	case named.Task != "":
		task, err := s.sourceTask(c, named, named.Task)
		if err != nil {
			return mediagate.Source{}, err
		}
		return clipOf(&task, named, named.Index-1)
	case named.Clip != "":
		at, err := s.maker(c.ctx, c.caller.key.AccountID, mediagate.MadeClip, named, named.Clip)
		if err != nil {
			return mediagate.Source{}, err
		}
		task, err := s.sourceTask(c, named, at.TaskID)
		if err != nil {
			return mediagate.Source{}, err
		}
		return clipOf(&task, named, at.Index)
	default:
		at, err := s.maker(c.ctx, c.caller.key.AccountID, mediagate.MadeVoice, named, named.Voice)
		if err != nil {
			return mediagate.Source{}, err
		}
		task, err := s.sourceTask(c, named, at.TaskID)
		if err != nil {
			return mediagate.Source{}, err
		}
		return mediagate.Source{TaskID: task.ID, Index: at.Index, VendorID: named.Voice}, nil
	}
}

// maker is the task of the account that made what a vendor's id names.
func (s *Server) maker(ctx context.Context, account string, kind mediagate.MadeKind, named *catalog.Source, vendorID string) (mediagate.MadeAt, error) {
	if !storable(vendorID) {
		return mediagate.MadeAt{}, unusable(named, "is unknown")
	}
	at, err := s.cfg.Store.MadeBy(ctx, account, kind, vendorID)
	if mediagate.Is(err, mediagate.KindNotFound) {
		return mediagate.MadeAt{}, unusable(named, "is unknown")
	}
	return at, err
}

// sourceTask reads the completed task of the account that the source is of.
func (s *Server) sourceTask(c *call, named *catalog.Source, id string) (mediagate.Task, error) {
	task, err := s.accountTask(c, named, id)
	if err == nil && task.Status != mediagate.StatusCompleted {
		err = unusable(named, "must be of a completed task, not of one that is "+string(task.Status))
	}
	return task, err
}

// accountTask reads the task of the account that the source is of, whatever has
// become of it.
func (s *Server) accountTask(c *call, named *catalog.Source, id string) (mediagate.Task, error) {
	if !looksLike(id, taskPrefix) {
		return mediagate.Task{}, unusable(named, "is unknown")
	}
	task, err := s.cfg.Store.Task(c.ctx, c.caller.key.AccountID, id)
	switch {
	case mediagate.Is(err, mediagate.KindNotFound):
		return mediagate.Task{}, unusable(named, "is unknown")
	case err != nil:
		return mediagate.Task{}, err
	case !slices.Contains(named.Rule.Of, c.models.canonical(task.Model)):
		return mediagate.Task{}, unusable(named, "must be of "+strings.Join(named.Rule.Of, " or ")+", the task's type is "+string(task.Type)+" and its model "+task.Model)
	}
	if until := s.cfg.Keep.FilesUntil(&task); !until.IsZero() && !s.now().Before(until) {
		for i := range task.Results {
			task.Results[i].Key = "" // about to be removed: only the account that made it can go on with it
		}
	}
	return task, nil
}

// buttonOf is the task with the button of it that the request presses.
func buttonOf(task *mediagate.Task, named *catalog.Source) (mediagate.Source, error) {
	button, err := named.Pick(task)
	return mediagate.Source{TaskID: task.ID, Button: button.CustomID}, err
}

// clipOf is one of a task's songs, by its index from 0, with the length of its
// file, which is the one that counts. What a task has beside songs, such as an
// archive, is no source.
func clipOf(task *mediagate.Task, named *catalog.Source, index int) (mediagate.Source, error) {
	songs := task.Made.Songs(task.Results)
	if len(songs) == 0 {
		return mediagate.Source{}, unusable(named, "must be of a task that made songs, the task's type is "+string(task.Type)+" and its model "+task.Model)
	}
	if index < 0 || index >= len(songs) {
		return mediagate.Source{}, mediagate.Invalid(named.Rule.Index, "%s must be between 1 and %d, the number of clips of the task", named.Rule.Index, len(songs))
	}
	song := songs[index]
	if song.File == (mediagate.Result{}) {
		return mediagate.Source{}, mediagate.Invalid(named.Rule.Index, "%s names a clip that could not be delivered", named.Rule.Index)
	}
	if err := named.Fits(song.Seconds); err != nil {
		return mediagate.Source{}, err
	}
	return mediagate.Source{TaskID: task.ID, Index: index, VendorID: song.ID, Key: song.File.Key, Clip: &song.Clip}, nil
}

// unusable is the refusal of a source, which names the field that names it.
func unusable(named *catalog.Source, rule string) error {
	return mediagate.Invalid(named.Field(), "%s %s", named.Field(), rule)
}
