package app

import (
	"testing"

	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/providers/all"
)

// The models that come with the program want nothing that its adapters lack.
func TestBuiltInModelsHaveTheirAdapters(t *testing.T) {
	t.Parallel()
	c, err := catalog.Load("")
	if err != nil {
		t.Fatal(err)
	}
	if len(offers(c)) == 0 {
		t.Fatal("the catalog offers nothing")
	}
	for _, problem := range cross(offers(c), all.Adapter) {
		t.Error(problem)
	}
}

// D6: a worker that stops lets synchronous calls end, of whichever vendor, unless
// an operator shortens its grace time.
func TestD6GraceOutlastsSynchronousCalls(t *testing.T) {
	t.Parallel()
	grace, synchronous := Defaults().ShutdownGrace, 0
	for _, provider := range all.Known() {
		adapter, _ := all.Adapter(provider)
		for name, operation := range adapter.Description.Operations {
			if !operation.Sync {
				continue
			}
			synchronous++
			if operation.Submit > grace {
				t.Errorf("%s of %s may take %v, a worker waits for %v", name, provider, operation.Submit, grace)
			}
		}
	}
	if synchronous == 0 {
		t.Error("no vendor is synchronous")
	}
}
