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

// routes asks the vendors' adapters on behalf of our channels.
type routes struct {
	adapter      func(provider string) (providers.Adapter, bool)
	fingerprints func(mediagate.Channel) []string
	channels     []mediagate.Channel
}

// placeholderID is the task id in questions to adapters.
var placeholderID = "task_" + strings.Repeat("0", 26)

// Supports asks the route's adapter once for each of our channels that could take the job, since
// a channel's options may choose another dialect of the vendor. The first channel that supports
// the request decides. If none does, the error is that of the first channel. Without such a
// channel it asks the adapter without options, and the answer says Unserved.
func (r routes) Supports(model string, route mediagate.Route, job mediagate.Job) api.Support {
	adapter, ok := r.adapter(route.Provider)
	operation, known := adapter.Description.Operations[route.Operation]
	if !ok || !known {
		return api.Support{Err: fmt.Errorf("provider %q has no operation %q", route.Provider, route.Operation)}
	}
	job.TaskID, job.ExternalID, job.Upstream, job.Operation = placeholderID, placeholderID, route.Upstream, route.Operation
	list := r.serving(model, route, job.Source)
	support := api.Support{Sync: operation.Sync, Fields: operation.Fields, Unserved: len(list) == 0}
	if support.Unserved {
		list = append(list, askedChannel{})
	}
	source := job.Source
	for i, c := range list {
		job.Source = source.As(c.made, mediagate.UploadComing)
		err := mediagate.Guarded(func() error { return adapter.Supports(job, c.options) })
		if err == nil {
			support.Err = nil
			return support
		}
		if i == 0 || !mediagate.Is(err, mediagate.KindInvalid) {
			support.Err = err
		}
	}
	return support
}

// askedChannel is a channel for which an adapter is asked about a request.
type askedChannel struct {
	options map[string]string
	made    bool // its account made the source of the request
}

// serving returns the channels that serve the model by the route.
func (r routes) serving(model string, route mediagate.Route, source *mediagate.Source) []askedChannel {
	made := make([]bool, len(r.channels))
	if source != nil {
		makers := make([]mediagate.VendorAccount, len(r.channels))
		for i, c := range r.channels {
			makers[i] = mediagate.VendorAccount{Channel: c.Name, Former: c.Former, Fingerprints: r.fingerprints(c)}
		}
		made = source.MadeBy(makers)
	}
	var list []askedChannel
	for i, c := range r.channels {
		if c.Serves(model, route) {
			list = append(list, askedChannel{c.Options, made[i]})
		}
	}
	return list
}

// uploads stores the media of requests in the bucket.
type uploads struct{ bucket *blob.Store }

// PutUpload stores a picture under the account's uploads.
func (u uploads) PutUpload(ctx context.Context, accountID, id string, picture io.Reader) (string, error) {
	return u.bucket.PutUpload(
		ctx, accountID, id, picture, blob.Limits{Media: "image", MaxBytes: catalog.MaxImageData + imagefile.MaxGrowth},
	)
}
