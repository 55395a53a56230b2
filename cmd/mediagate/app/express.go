package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/storage/blob"
)

// routes asks the adapters of vendors on behalf of our channels.
type routes struct {
	adapter  func(provider string) (providers.Adapter, bool)
	channels []mediagate.Channel
}

// unborn is the id of a task that may never be.
var unborn = "task_" + strings.Repeat("0", 26)

// Express asks the route's adapter once for each of our channels that could
// take the job, since a channel's options may choose between dialects of a
// vendor, and believes the first that can. Where there is no such channel the
// adapter is asked without options, and the answer says so.
// When none can, the reason is the first channel's.
func (r routes) Express(model string, route mediagate.Route, params json.RawMessage) api.Expression {
	adapter, ok := r.adapter(route.Provider)
	operation, known := adapter.Description.Operations[route.Operation]
	if !ok || !known {
		return api.Expression{Err: fmt.Errorf("provider %q has no operation %q", route.Provider, route.Operation)}
	}
	job := mediagate.Job{
		TaskID: unborn, ExternalID: unborn, Upstream: route.Upstream, Operation: route.Operation, Params: params,
	}
	list := r.options(model, route)
	e := api.Expression{Sync: operation.Sync, Fields: operation.Fields, Unserved: len(list) == 0}
	if e.Unserved {
		list = append(list, nil)
	}
	for i, options := range list {
		err := guarded(func() error { return adapter.Express(job, options) })
		if err == nil {
			e.Err = nil
			return e
		}
		if i == 0 || !mediagate.Is(err, mediagate.KindInvalid) {
			e.Err = err
		}
	}
	return e
}

// options are those of the channels that serve the model by the route.
func (r routes) options(model string, route mediagate.Route) []map[string]string {
	var list []map[string]string
	for _, c := range r.channels {
		if c.Serves(model, route) {
			list = append(list, c.Options)
		}
	}
	return list
}

// guarded turns an adapter's panic into an error: one vendor's slip is no
// reason not to ask the next.
func guarded(ask func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return ask()
}

// uploads stores the media of requests in the bucket.
type uploads struct{ bucket *blob.Store }

// PutUpload stores a picture under the account's uploads.
func (u uploads) PutUpload(ctx context.Context, accountID, id string, picture io.Reader) (string, error) {
	return u.bucket.PutUpload(ctx, accountID, id, picture, blob.Limits{Media: "image", MaxBytes: catalog.MaxImageData})
}
