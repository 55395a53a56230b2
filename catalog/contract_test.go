package catalog_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
)

// TestPriceSpans checks the range of prices of each operation that makes a task.
func TestPriceSpans(t *testing.T) {
	t.Parallel()
	c := load(t)
	const art, music = "/v1/artgen/generations", "/v1/music/generations"
	operation := func(endpoint string, from, to mediagate.Micros) catalog.PriceSpan {
		return catalog.PriceSpan{Endpoint: endpoint, Unit: mediagate.UnitOperation, From: from, To: to}
	}
	song := func(endpoint string, price mediagate.Micros) catalog.PriceSpan {
		return catalog.PriceSpan{Endpoint: endpoint, Unit: mediagate.UnitSong, From: price, To: price}
	}
	for model, want := range map[string][]catalog.PriceSpan{
		"art": { // without the modal call, which is free
			operation(art, 15_000, 108_000),
			operation(art+"/imagine", 15_000, 108_000),
			operation(art+"/upscale", 10_000, 10_000),
			operation(art+"/variation", 15_000, 108_000),
			operation(art+"/high-variation", 15_000, 108_000),
			operation(art+"/low-variation", 15_000, 108_000),
			operation(art+"/inpaint", 15_000, 108_000),
			operation(art+"/reroll", 15_000, 108_000),
			operation(art+"/pan", 15_000, 108_000),
			operation(art+"/zoom", 15_000, 108_000),
			operation(art+"/describe", 10_000, 10_000),
			operation(art+"/blend", 15_000, 108_000),
		},
		"music-a": {
			song(music, 100_000),
			operation(music+"/remaster", 100_000, 100_000),
			operation(music+"/stemsAll", 250_000, 250_000),
			operation(music+"/createVoice", 20_000, 20_000),
			operation(music+"/replaceMusic", 100_000, 100_000),
			song(music+"/sample", 120_000),
		},
	} {
		m, _ := c.Model(model)
		got, err := m.PriceSpans()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", model, diff)
		}
	}
}
