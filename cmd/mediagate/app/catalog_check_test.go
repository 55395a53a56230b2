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
	for _, problem := range cross(offers(c), all.Builtin()) {
		t.Error(problem)
	}
}
