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
	endpoint string // the path that takes the request in our own form
	model    string // the model's id, or the alias that the request names
	kind     mediagate.Type
	pictures []picture // pictures in the body
	sources  []mediagate.TaskFile
	group    string // the caller's group, which sets prices and models
	capacity int    // the group's
}

// hold returns the most that the request can cost.
func (v validated) hold() mediagate.Micros { return price.Total(v.Charges) }

// validate checks a body in the order of the contract: the model is known, the caller may use it,
// the request is valid, and a vendor can make it.
func (s *Server) validate(c *call, from submitRequest) (validated, error) {
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
		return validated{}, mediagate.Errorf(
			mediagate.KindForbidden, "this API key may not use model %s", mediagate.Quote(model.ID),
		)
	}
	request, err := accept(operation, from)
	if err != nil {
		return validated{}, err
	}
	// The larger limit is for media. Other fields are parsed and written again for each route, and
	// they stay in the task's row.
	if operation.MaxBody > bodyLimit && len(request.Params) > bodyLimit {
		return validated{}, mediagate.Errorf(
			mediagate.KindTooLarge, "the body must be at most %d bytes, without the media in it", bodyLimit,
		)
	}
	v := validated{
		Request:  request.WithFactor(rights.factor),
		endpoint: from.endpoint,
		model:    model.ID,
		kind:     model.Type,
		group:    rights.group,
		capacity: rights.capacity,
	}
	if v.pictures, err = pictures(request.Uploads); err != nil {
		return validated{}, err
	}
	if from.endpoint == catalog.ModalEndpoint {
		if err := s.noTaskFiles(request); err != nil {
			return validated{}, err
		}
		v.Params, err = s.modalParams(c, request)
		return v, err
	}
	if v.Plan.Source, err = s.resolveSource(c, request.Source); err != nil {
		return validated{}, err
	}
	if v.sources, err = s.taskFiles(c, request); err != nil {
		return validated{}, err
	}
	permit, err := s.cfg.Limits.Quotes.Acquire(c.ctx, c.tenant(), 1)
	if err != nil {
		return validated{}, c.errNoRoom(s.cfg.Limits.Quotes, "requests being validated")
	}
	defer permit.Release()
	if v.Plan, v.Charges, err = s.selectRoutes(c.ctx, c.models.routes, v); err != nil {
		return validated{}, err
	}
	return v, nil
}

// accept validates a body after its translation into our own form. Errors name the fields that
// the client wrote.
func accept(operation *catalog.Operation, from submitRequest) (catalog.Request, error) {
	if from.translate == nil {
		if err := operation.RefuseUnknown(from.strict); err != nil {
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
		return catalog.Request{}, withSentName(err, sent)
	}
	if request.Folded == nil {
		request.Folded = map[string]string{}
	}
	maps.Copy(request.Folded, sent)
	return request, nil
}

// rights says which models a call may use, and at which prices.
type rights struct {
	group    string
	factor   price.Factor
	capacity int        // the group's
	lists    [][]string // patterns of models: the group's, and the key's
}

// rightsOf returns the rights of the caller's key and group. A group that is not configured gives
// none.
func (s *Server) rightsOf(c *call) rights {
	name := c.caller.group()
	g, ok := s.groups[name]
	if !ok {
		return rights{}
	}
	return rights{group: name, factor: g.factor, capacity: g.capacity, lists: [][]string{g.models, c.caller.key.Models}}
}

// allow reports whether the caller may use a model that has one of these names.
func (r rights) allow(names ...string) bool {
	for _, patterns := range r.lists {
		if !matchesAny(patterns, names...) {
			return false
		}
	}
	return r.lists != nil
}

// matchesAny reports whether one of the patterns matches one of the names. An empty list matches
// everything.
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

// matches reports whether the pattern matches the whole name. A * stands for any text.
func matches(pattern, name string) bool {
	begin, rest, hasStar := strings.Cut(pattern, "*")
	if !hasStar {
		return pattern == name
	}
	// Clients write the patterns, and each call compares all patterns of its key with all models, so
	// a pattern that is too long is ruled out first.
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

// Support is a route's answer to whether it can make a request.
type Support struct {
	Sync   bool     // the submit call itself returns the result
	Fields []string // the request fields that the route takes
	// Unserved is set if none of our channels serves the route. A channel may be added while the
	// task waits.
	Unserved bool
	// Err says why the route does not support the request: a KindInvalid that names the field and the
	// rule, but quotes nothing that the client wrote. Any other kind is an internal error, which says
	// nothing about the request.
	Err error
}

// selectRoutes returns the plan with only the routes that support the request, and the reasons
// why the others were left out. So a request that no vendor can make is refused before money is
// held, and a task has only routes that it can take.
//
// If some routes have a channel, one of them must support the request. Otherwise the task would
// wait for a vendor account that we do not have. Supporting routes without a channel stay in the
// plan.
//
// A route that makes something other than the request asks for is used only if no other route is
// left, at its own price.
//
// If no route is left, the error is the refusal of the nearest route: the one that takes most of
// the request's fields. Among equals it is the last route of the first provider, since a
// provider's later routes can do what its earlier ones cannot. The nearest route is one with a
// channel, unless no route has one. If no route is left and an adapter failed, the error is
// internal, since the request may be valid.
func (s *Server) selectRoutes(
	ctx context.Context, routes Routes, r validated,
) (plan mediagate.Plan, charges []mediagate.Charge, err error) {
	plan, charges = r.Plan, r.Charges
	plan.Routes, plan.Skipped = nil, nil
	params, fields, err := withUploads(r.Request)
	if err != nil {
		return plan, charges, err
	}
	if params, err = withPlaceholders(params, r.sources); err != nil {
		return plan, charges, err
	}
	answers := make([]Support, len(r.Plan.Routes))
	served := false // some route has a channel
	for i, route := range r.Plan.Routes {
		answers[i] = routes.Supports(r.model, route, mediagate.Job{Params: params, Source: plan.Source})
		served = served || !answers[i].Unserved
	}
	// exact is set if a route makes exactly what the request asks for. If some routes have a
	// channel, only those count.
	exact := false
	for i, a := range answers {
		exact = exact || a.Err == nil && (!served || !a.Unserved) && r.Instead[i] == nil
	}
	var refusal, fault error
	most, nearest, possible := -1, "", false
	for i, route := range r.Plan.Routes {
		a := answers[i]
		counts, instead := !served || !a.Unserved, r.Instead[i]
		if a.Err == nil && (instead == nil || !exact) {
			route.Sync = a.Sync
			plan.Routes = append(plan.Routes, route)
			possible = possible || counts
			if instead != nil {
				charges = instead
			}
			continue
		}
		skipped := mediagate.SkippedRoute{Provider: route.Provider, Upstream: route.Upstream}
		if a.Err == nil {
			skipped.Reason = "it makes something other than the request asks for"
		} else if mediagate.Is(a.Err, mediagate.KindInvalid) {
			why := domainError(a.Err)
			skipped.Reason = nameField(why.Message, why.Param)
			if takes := countIn(fields, a.Fields); counts && (takes > most || takes == most && route.Provider == nearest) {
				most, nearest, refusal = takes, route.Provider, a.Err
			}
		} else {
			skipped.Reason = "its adapter failed"
			fault = cmp.Or(fault, fmt.Errorf("asking %s for %s: %w", route.Provider, route.Upstream, a.Err))
			s.log.ErrorContext(ctx, "a route was left out: its adapter failed",
				"provider", route.Provider, "upstream", route.Upstream, "error", a.Err)
		}
		plan.Skipped = append(plan.Skipped, skipped)
	}
	switch {
	case possible:
		return plan, charges, nil
	case fault != nil:
		return plan, charges, &mediagate.Error{Kind: mediagate.KindInternal, Message: "no route can be asked", Err: fault}
	case refusal != nil:
		return plan, charges, withSentName(refusal, r.Folded)
	default:
		return plan, charges, mediagate.Errorf(mediagate.KindInternal, "%s has no route", r.model)
	}
}

// withSentName returns the refusal with the name of the field that the client sent, if the
// refused field was derived from it.
func withSentName(refusal error, folded map[string]string) error {
	e := domainError(refusal)
	field, _, _ := strings.Cut(e.Param, "[")
	sent, ok := folded[field]
	if !ok || sent == field {
		return refusal
	}
	return mediagate.Invalid(sent, "%s: %s", sent, nameField(e.Message, e.Param)).Because(e.Code)
}

// withUploads returns the parameters as a job will have them, with a placeholder for each upload,
// and their fields.
func withUploads(r catalog.Request) (json.RawMessage, map[string]json.RawMessage, error) {
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

// resolveSource finds the earlier result of the account that the request names, and the job that
// made it. It returns nil if the request names none. Its errors name the client's field and the
// rule, unless the database is away. A task of another account gets the same error as an unknown
// task.
func (s *Server) resolveSource(c *call, named *catalog.Source) (*mediagate.Source, error) {
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
		return nil, errSource(named, "names a task whose job is no longer known")
	case err != nil:
		return nil, err
	}
	found.Provider, found.Channel, found.Fingerprint, found.Ref = job.Provider, job.Channel, job.Fingerprint, job.Ref
	if found.Fields, err = json.Marshal(named.Fields); err != nil {
		return nil, mediagate.Errorf(mediagate.KindInternal, "the fields of a source cannot be written: %w", err)
	}
	return &found, nil
}

// findSource reads the task that made the source. A request can name a source by a button, a
// task, a clip or a voice.
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
		at, err := s.findMaker(c.ctx, c.caller.key.AccountID, mediagate.MadeClip, named, named.Clip)
		if err != nil {
			return mediagate.Source{}, err
		}
		task, err := s.sourceTask(c, named, at.TaskID)
		if err != nil {
			return mediagate.Source{}, err
		}
		return clipOf(&task, named, at.Index)
	default:
		at, err := s.findMaker(c.ctx, c.caller.key.AccountID, mediagate.MadeVoice, named, named.Voice)
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

// findMaker finds which task of the account made the clip or voice with the vendor's id.
func (s *Server) findMaker(
	ctx context.Context, account string, kind mediagate.MadeKind, named *catalog.Source, vendorID string,
) (mediagate.MadeAt, error) {
	if !storable(vendorID) {
		return mediagate.MadeAt{}, errSource(named, "is unknown")
	}
	at, err := s.cfg.Store.MadeBy(ctx, account, kind, vendorID)
	if mediagate.Is(err, mediagate.KindNotFound) {
		return mediagate.MadeAt{}, errSource(named, "is unknown")
	}
	return at, err
}

// sourceTask reads the task that made the source. It must be a completed task of the account.
func (s *Server) sourceTask(c *call, named *catalog.Source, id string) (mediagate.Task, error) {
	task, err := s.accountTask(c, named, id)
	if err == nil && task.Status != mediagate.StatusCompleted {
		err = errSource(named, "must be of a completed task, and the task is "+string(task.Status))
	}
	return task, err
}

// accountTask reads the task that made the source, in any state. It must belong to the account,
// and its model must be one that the request accepts.
func (s *Server) accountTask(c *call, named *catalog.Source, id string) (mediagate.Task, error) {
	if !isID(id, taskPrefix) {
		return mediagate.Task{}, errSource(named, "is unknown")
	}
	task, err := s.cfg.Store.Task(c.ctx, c.caller.key.AccountID, id)
	switch {
	case mediagate.Is(err, mediagate.KindNotFound):
		return mediagate.Task{}, errSource(named, "is unknown")
	case err != nil:
		return mediagate.Task{}, err
	case !slices.Contains(named.Rule.Of, c.models.canonical(task.Model)):
		return mediagate.Task{}, errSource(named, fmt.Sprintf("must be of %s, the task's type is %s and its model %s",
			strings.Join(named.Rule.Of, " or "), task.Type, task.Model))
	}
	if until := s.cfg.Keep.FilesUntil(&task); !until.IsZero() && !s.now().Before(until) {
		// The files are about to be removed, so only the vendor account that made them can use the source.
		for i := range task.Results {
			task.Results[i].Key = ""
		}
	}
	return task, nil
}

// buttonOf returns the task as a source, with the button that the request presses.
func buttonOf(task *mediagate.Task, named *catalog.Source) (mediagate.Source, error) {
	button, err := named.PickButton(task)
	return mediagate.Source{TaskID: task.ID, Button: button.CustomID}, err
}

// clipOf returns one of the task's songs as a source, by its index from 0, with the length of its
// file. A task's other results, such as an archive, are no sources.
func clipOf(task *mediagate.Task, named *catalog.Source, index int) (mediagate.Source, error) {
	songs := task.Made.Songs(task.Results)
	if len(songs) == 0 {
		return mediagate.Source{}, errSource(
			named, "must be of a task that made songs, the task's type is "+string(task.Type)+" and its model "+task.Model,
		)
	}
	if index < 0 || index >= len(songs) {
		return mediagate.Source{}, mediagate.Invalid(
			named.Rule.Index, "%s must be between 1 and %d, the number of clips of the task", named.Rule.Index, len(songs),
		)
	}
	song := songs[index]
	if song.File == (mediagate.Result{}) {
		return mediagate.Source{}, mediagate.Invalid(
			named.Rule.Index, "%s names a clip that could not be delivered", named.Rule.Index,
		)
	}
	if err := named.CheckTimes(song.Seconds); err != nil {
		return mediagate.Source{}, err
	}
	return mediagate.Source{TaskID: task.ID, Index: index, VendorID: song.ID, Key: song.File.Key, Clip: &song.Clip}, nil
}

// errSource is the refusal of a source. It names the field that names the source.
func errSource(named *catalog.Source, rule string) error {
	return mediagate.Invalid(named.Field(), "%s %s", named.Field(), rule)
}
