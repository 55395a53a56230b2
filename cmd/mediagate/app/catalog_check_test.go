package app

import (
	"testing"

	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/providers/all"
)

// TestBuiltInModelsHaveTheirAdapters checks that the built-in models need nothing that the
// adapters lack.
func TestBuiltInModelsHaveTheirAdapters(t *testing.T) {
	t.Parallel()
	c, err := catalog.Load("")
	must(t, err)
	if len(offers(c)) == 0 {
		t.Fatal("the catalog offers nothing")
	}
	for _, problem := range checkOffers(offers(c), all.Builtin()) {
		t.Error(problem)
	}
}
