package e2e_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/mediagate/mediagate/internal/npmtest"
)

// TestClients checks that clients of other vendors need only another address and a key: those of
// OpenAI, Anthropic and Google, and Vercel's ai. testdata/clients has the scenarios. Tests with
// npm packages run before the parallel tests, which would suffer from the load of npm and
// compilers.
func TestClients(t *testing.T) {
	folder := npmtest.Install(t, "clients", filepath.Join("testdata", "clients"))
	w := newWorld(t, options{shape: standalone})
	var cat bytes.Buffer
	if err := png.Encode(&cat, image.NewPaletted(image.Rect(0, 0, 400, 400), color.Palette{color.Black, color.White})); err != nil {
		t.Fatal(err)
	}
	npmtest.Run(t, folder, nil, nil, "node", "clients.mjs", w.apiURLs[0], w.key, base64.StdEncoding.EncodeToString(cat.Bytes()))
}

// TestHeyAPIClient checks that a client that @hey-api/openapi-ts generates from the served
// document compiles, submits a video and waits for its end. The clients of openapi-typescript
// and oapi-codegen are tested together with the documents that show them.
func TestHeyAPIClient(t *testing.T) {
	folder := npmtest.Install(t, "heyapi", filepath.Join("testdata", "heyapi"))
	w := newWorld(t, options{shape: standalone})
	a, err := request{method: http.MethodGet, url: w.apiURLs[0] + "/openapi.json"}.do(t.Context())
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "openapi.json"), a.body, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join("..", "node_modules", ".bin")
	npmtest.Run(t, folder, nil, nil, filepath.Join(bin, "openapi-ts"), "--input", "openapi.json", "--output", "client", "--no-log-file")
	npmtest.Run(t, folder, nil, nil, filepath.Join(bin, "tsc"))
	if out := npmtest.Run(t, folder, nil, nil, "node", "out/submit.js", w.apiURLs[0], w.key); string(out) != "true completed\n" {
		t.Errorf("the client printed %q", out)
	}
}
