package catalog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
)

// Whatever a body says, it is taken or refused as invalid; what is taken is held
// for, can be written, and can be asked for again.
func FuzzAccept(f *testing.F) {
	models, err := catalog.Load("")
	if err != nil {
		f.Fatal(err)
	}
	endpoints := catalog.Endpoints()
	for i := range endpoints {
		for _, m := range models.Models() {
			f.Add(i, []byte(`{"model":"`+m.ID+`","prompt":"a","duration":5,"image_urls":["https://a.example.com/x.png"]}`))
		}
		f.Add(i, []byte(`{"model":1,"prompt":null,"n":1e99,"duration":-0.5,"metadata":{"reference":[]},"webhook":{}}`))
	}
	f.Fuzz(func(t *testing.T, endpoint int, raw []byte) {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		var body map[string]any
		if decoder.Decode(&body) != nil || len(raw) > 64<<10 {
			return
		}
		invalid := func(err error) {
			var ours *mediagate.Error
			if !errors.As(err, &ours) || ours.Message == "" || len(ours.Message) > 4<<10 {
				t.Errorf("refused as %v", err)
			}
		}
		operation, err := models.Find(endpoints[uint(endpoint)%uint(len(endpoints))].Path, body)
		if err != nil {
			invalid(err)
			return
		}
		request, err := operation.Accept(body)
		if err != nil {
			invalid(err)
			return
		}
		for _, c := range request.Charges {
			if c.Quantity < 0 || c.UnitPrice < 0 {
				t.Errorf("charged %+v", c)
			}
		}
		if !json.Valid(request.Params) {
			t.Errorf("the request is written as %s", request.Params)
		}
		again(t, operation, request)
	})
}
