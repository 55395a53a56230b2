package api

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
)

// secretPlace stands where a camera notes it.
const secretPlace = "51.5N 0.1W"

// encoded is a small picture.
func encoded(t *testing.T, kind string) string {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch m := image.NewPaletted(image.Rect(0, 0, 16, 16), color.Palette{color.Black, color.White}); kind {
	case "png":
		err = png.Encode(&b, m)
	case "jpeg":
		err = jpeg.Encode(&b, m, nil)
	}
	must(t, err)
	return b.String()
}

// noted returns a JPEG with its location in a comment and more bytes after its end.
func noted(jpeg string) string {
	return jpeg[:2] + "\xff\xfe\x00\x0c" + secretPlace + jpeg[2:] + jpeg
}

func dataURI(kind, file string) string {
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString([]byte(file))
}

// TestPictures checks that the content of a picture decides its type, not its data URI, with the
// same result as for an upload.
func TestPictures(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		uri  string
		says string
	}{
		"PNG said to be a GIF": {dataURI("image/gif", encoded(t, "png")), ""},
		"JPEG and more":        {dataURI("image/jpeg", noted(encoded(t, "jpeg"))), ""},
		"PNG and more":         {dataURI("image/png", encoded(t, "png")+"<html>"), "goes on after the end of the image"},
		"SVG":                  {dataURI("image/png", "<svg xmlns='http://www.w3.org/2000/svg'/>"), "is no JPEG, PNG, WebP or GIF image"},
		"empty":                {"data:image/png;base64,", "is empty"},
		"broken base64":        {"data:image/png;base64,!!!!", "is not valid base64"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list, err := pictures(map[string]string{"last_frame_image": test.uri})
			if test.says == "" {
				if err != nil || len(list) != 1 || list[0].field != "last_frame_image" {
					t.Errorf("%v, %v", list, err)
				}
				return
			}
			e := domainError(err)
			if e.Kind != mediagate.KindInvalid || e.Param != "last_frame_image" || e.Message != "last_frame_image "+test.says {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// shelf is a bucket, and a database that refuses holds with an error.
type shelf struct {
	Store
	refusal error
	files   map[string][]byte
	fail    error
}

func (s *shelf) CheckHold(context.Context, string, string, mediagate.Micros) error { return s.refusal }

func (s *shelf) PutUpload(ctx context.Context, accountID, id string, picture io.Reader) (string, error) {
	if _, timed := ctx.Deadline(); !timed || s.fail != nil {
		return "", s.fail
	}
	file, err := io.ReadAll(picture)
	if err != nil {
		return "", err
	}
	s.files["uploads/"+accountID+"/"+id] = file
	return "uploads/" + accountID + "/" + id, nil
}

// TestStorePictures checks that pictures are stored like uploads, under keys of the account and
// without invisible data, once the account can pay. The request then holds only their keys.
func TestStorePictures(t *testing.T) {
	t.Parallel()
	const price = 500_000
	first, last := encoded(t, "png"), encoded(t, "jpeg")
	for name, test := range map[string]struct {
		shelf   shelf
		kind    mediagate.Kind
		message string
	}{
		"stored": {},
		"quota too small": {
			shelf{refusal: mediagate.NotEnough("the key's quota is not enough", price, price-1)},
			mediagate.KindPayment, "the key's quota is not enough: 0.50 is needed, 0.499999 is left",
		},
		"the bucket is away": {
			shelf{fail: errors.New("secret detail")},
			mediagate.KindUnavailable, "storing the media of a request",
		},
		"the bucket refuses": {
			shelf{fail: mediagate.Invalid("", "the file is empty")},
			mediagate.KindInvalid, "first_frame_image: the file is empty",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &test.shelf
			store.files = map[string][]byte{}
			s := serverWith(t, store)
			ec := echo.New().NewContext(httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil), httptest.NewRecorder())
			c := &call{
				Context: ec, server: t.Context(), route: route{time: time.Minute},
				caller: &caller{key: mediagate.Key{ID: "key_1", AccountID: "acc_1"}},
			}
			c.setTimeout(time.Minute)
			defer c.cancelContext()
			uploads := map[string]string{"first_frame_image": dataURI("image/png", first), "last_frame_image": dataURI("image/jpeg", noted(last))}
			list, err := pictures(uploads)
			must(t, err)
			o := validated{pictures: list, Request: catalog.Request{
				Uploads: uploads, Charges: []mediagate.Charge{{Quantity: 5, UnitPrice: price / 5}},
			}}
			err = s.storePictures(c, &o)
			if test.kind != mediagate.KindInternal {
				if e := domainError(err); e.Kind != test.kind || e.Message != test.message {
					t.Errorf("the error is %v", err)
				}
				if len(store.files) != 0 {
					t.Errorf("%d files are stored", len(store.files))
				}
				return
			}
			must(t, err)
			got := map[string]string{}
			for field, key := range o.Plan.Uploads {
				if !strings.HasPrefix(key, "uploads/acc_1/") {
					t.Errorf("%s has the key %s", field, key)
				}
				got[field] = string(bytes.Clone(store.files[key]))
			}
			if diff := cmp.Diff(map[string]string{"first_frame_image": first, "last_frame_image": last}, got); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
			if o.pictures != nil || o.Uploads != nil {
				t.Error("the order still holds the pictures")
			}
		})
	}
}

// serverWith returns a server that has only a store and a bucket.
func serverWith(t *testing.T, store *shelf) *Server {
	t.Helper()
	models := BuiltIn(t)
	s, err := New(Config{Store: store, Uploads: store, Files: idle{}, FileURL: mediagate.File.Name, Catalog: models, Routes: sayings{}, Starter: idle{}, Runs: struct{ Runs }{}, Signer: idle{}, Remover: idle{}, Speaker: idle{}})
	must(t, err)
	t.Cleanup(s.Close)
	return s
}

// idle is a service that is never called.
type idle struct {
	Files
	Starter
	Signer
	Speaker
	Remover
}
