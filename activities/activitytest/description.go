package activitytest

import (
	"sync"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
)

// Descriptions are what the adapters say about their operations. By default an asynchronous
// submit takes at most 30 s, and a synchronous one 150 s.
type Descriptions struct {
	mu         sync.Mutex
	operations map[string]providers.Operation
}

// Set describes all operations of a provider.
func (d *Descriptions) Set(provider string, o providers.Operation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.operations == nil {
		d.operations = make(map[string]providers.Operation)
	}
	d.operations[provider] = o
}

// Operation returns the operation of a route.
func (d *Descriptions) Operation(r mediagate.Route) (providers.Operation, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o, ok := d.operations[r.Provider]; ok {
		return o, true
	}
	switch r.Provider {
	case AsyncProvider:
		return providers.Operation{Find: true, Cancel: true, Callback: true, Submit: 30 * time.Second}, true
	case SyncProvider:
		return providers.Operation{Sync: true, Submit: 150 * time.Second}, true
	default:
		return providers.Operation{}, false
	}
}
