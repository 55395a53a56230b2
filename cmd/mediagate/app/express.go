package app

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/media/imagefile"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/storage/blob"
)

// routes asks the adapters of vendors on behalf of our channels.
type routes struct {
	adapter      func(provider string) (providers.Adapter, bool)
	fingerprints func(mediagate.Channel) []string
	channels     []mediagate.Channel
}

// unborn is the id of a task that may never be.
var unborn = "task_" + strings.Repeat("0", 26)

// Express asks the route's adapter once for each of our channels that could
// take the job, since a channel's options may choose between dialects of a
// vendor, and believes the first that can. Where there is no such channel the
// adapter is asked without options, and the answer says so.
// When none can, the reason is the first channel's.
func (r routes) Express(model string, route mediagate.Route, job mediagate.Job) api.Expression {
	adapter, ok := r.adapter(route.Provider)
	operation, known := adapter.Description.Operations[route.Operation]
	if !ok || !known {
		return api.Expression{Err: fmt.Errorf("provider %q has no operation %q", route.Provider, route.Operation)}
	}
	job.TaskID, job.ExternalID, job.Upstream, job.Operation = unborn, unborn, route.Upstream, route.Operation
	list := r.serving(model, route, job.Source)
	e := api.Expression{Sync: operation.Sync, Fields: operation.Fields, Unserved: len(list) == 0}
	if e.Unserved {
		list = append(list, asked{})
	}
	source := job.Source
	for i, c := range list {
		job.Source = source.As(c.made, mediagate.UploadComing)
		err := mediagate.Guarded(func() error { return adapter.Express(job, c.options) })
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

// asked is a channel as its adapter is asked about a request.
type asked struct {
	options map[string]string
	made    bool // its account made what the request works on
}

// serving are the channels that serve the model by the route.
func (r routes) serving(model string, route mediagate.Route, source *mediagate.Source) []asked {
	made := make([]bool, len(r.channels))
	if source != nil {
		makers := make([]mediagate.VendorAccount, len(r.channels))
		for i, c := range r.channels {
			makers[i] = mediagate.VendorAccount{Channel: c.Name, Former: c.Former, Fingerprints: r.fingerprints(c)}
		}
		made = source.MadeBy(makers)
	}
	var list []asked
	for i, c := range r.channels {
		if c.Serves(model, route) {
			list = append(list, asked{c.Options, made[i]})
		}
	}
	return list
}

// uploads stores the media of requests in the bucket.
type uploads struct{ bucket *blob.Store }

// PutUpload stores a picture under the account's uploads.
func (u uploads) PutUpload(ctx context.Context, accountID, id string, picture io.Reader) (string, error) {
	return u.bucket.PutUpload(ctx, accountID, id, picture, blob.Limits{Media: "image", MaxBytes: catalog.MaxImageData + imagefile.MaxGrowth})
}
