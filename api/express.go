package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
)

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
func (s *Server) express(ctx context.Context, routes Routes, model string, r catalog.Request) (plan mediagate.Plan, charges []mediagate.Charge, err error) {
	plan, charges = r.Plan, r.Charges
	plan.Routes, plan.Skipped = nil, nil
	params, fields, err := withMedia(r)
	if err != nil {
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
	if !ok {
		return refusal
	}
	return mediagate.Invalid(sent, "%s: %s", sent, nameField(e.Message, e.Param))
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
