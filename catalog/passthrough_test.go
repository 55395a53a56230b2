package catalog_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/catalog/price"
)

func passed(id string, kind mediagate.Type, price string) catalog.Passthrough {
	return catalog.Passthrough{
		ID: id, Type: kind, Price: price, OnUnknown: mediagate.OnUnknownPark, Where: "channel one: passthrough." + id,
		Routes: []mediagate.Route{{Provider: "acme", Upstream: "up/" + id, Operation: "base_video"}},
	}
}

// TestPassthrough checks that a model without a file has the base contract, is in no list, and
// costs what its channel says.
func TestPassthrough(t *testing.T) {
	t.Parallel()
	c, err := catalog.Load("", catalog.WithPassthrough([]catalog.Passthrough{
		passed("vendor/film", mediagate.TypeVideo, "0.25"), passed("vendor/still", mediagate.TypeImage, "0.02"), passed("free", mediagate.TypeImage, ""),
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range c.Models() {
		if m.Uncataloged {
			t.Errorf("%s is in the list", m.ID)
		}
	}
	if _, ok := c.Model("vendor/film"); ok {
		t.Error("it is a model of the catalog")
	}
	for name, tt := range map[string]struct{ endpoint, body, params, hold string }{
		"video":         {"/v1/videos/generations", `{"model":"vendor/film","prompt":"a"}`, `{"prompt":"a"}`, "0.25"},
		"video, length": {"/v1/videos/generations", `{"model":"vendor/film","prompt":"a","duration":10}`, `{"duration":10,"prompt":"a"}`, "0.25"},
		"one image":     {"/v1/images/generations", `{"model":"vendor/still","prompt":"a"}`, `{"prompt":"a"}`, "0.02"},
		"three images":  {"/v1/images/generations", `{"model":"vendor/still","prompt":"a","n":3}`, `{"n":3,"prompt":"a"}`, "0.06"},
		"free":          {"/v1/images/generations", `{"model":"free","prompt":"a"}`, `{"prompt":"a"}`, "0.00"},
		"all fields": {
			"/v1/images/generations",
			`{"model":"free","prompt":"a","image_urls":["https://example.com/1"],"duration":5,"resolution":"2K","size":"1:1","aspect_ratio":"1:1","n":1,"seed":0,"webhook":"https://example.com","metadata":{"reference":"r"},"other":1}`,
			`{"aspect_ratio":"1:1","duration":5,"image_urls":["https://example.com/1"],"n":1,"prompt":"a","resolution":"2K","seed":0,"size":"1:1"}`, "0.00",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := c.Find(tt.endpoint, parse(t, tt.body))
			if err != nil {
				t.Fatal(err)
			}
			if o.Model.Category != "unknown" || !o.Model.Uncataloged {
				t.Errorf("%+v", o.Model)
			}
			r, err := o.Accept(parse(t, tt.body))
			if err != nil {
				t.Fatal(err)
			}
			if string(r.Params) != tt.params || price.Total(r.Charges).String() != tt.hold {
				t.Errorf("%s for %s", r.Params, price.Total(r.Charges))
			}
			again(t, o, r)
			want := []mediagate.Route{{Provider: "acme", Upstream: "up/" + o.Model.ID, Operation: "base_video", Passthrough: true}}
			if diff := cmp.Diff(want, r.Plan.Routes); diff != "" || r.Plan.OnUnknown != mediagate.OnUnknownPark {
				t.Error(diff)
			}
		})
	}
	for body, param := range map[string]string{
		`{"model":"vendor/film"}`:                                                   "prompt",
		`{"model":"vendor/film","prompt":"a","duration":0}`:                         "duration",
		`{"model":"vendor/film","prompt":"a","duration":"5"}`:                       "duration",
		`{"model":"vendor/film","prompt":"a","n":5}`:                                "n",
		`{"model":"vendor/film","prompt":"a","image_urls":["http://10.0.0.1/"]}`:    "image_urls[0]",
		`{"model":"vendor/film","prompt":"a","seed":-1}`:                            "seed",
		`{"model":"vendor/film","prompt":"a","metadata":{"reference":["no text"]}}`: "metadata.reference",
	} {
		o, err := c.Find("/v1/videos/generations", parse(t, body))
		if err != nil {
			t.Fatal(err)
		}
		_, err = o.Accept(parse(t, body))
		refusal(t, err, param)
	}
	_, err = c.Find("/v1/images/generations", parse(t, `{"model":"vendor/film"}`))
	refusal(t, err, "model")
}

// TestPassthroughRefused checks the errors that a start must report.
func TestPassthroughRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		model catalog.Passthrough
		want  string
	}{
		"a model of the catalog": {passed("alpha-v3", mediagate.TypeVideo, ""), "catalog: channel one: passthrough.alpha-v3: alpha-v3 is a model of the catalog, of alpha-v3.yaml"},
		"an alias":               {passed("zeta-2-ext", mediagate.TypeImage, ""), "zeta-2-ext is a model of the catalog"},
		"a price that is none":   {passed("x", mediagate.TypeVideo, "cheap"), `"cheap" for is no price`},
	} {
		_, err := catalog.Load("", catalog.WithPassthrough([]catalog.Passthrough{tt.model}))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
