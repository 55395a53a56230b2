package vertex_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"

	"github.com/mediagate/mediagate/sandbox"
	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

type m = sandboxtest.M

var with = sandboxtest.With

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	model = "/vertex/v1/projects/sandbox-project/locations/us-central1/publishers/google/models/veo-3.1-generate-001"
	owner = "projects/sandbox-project/locations/us-central1/publishers/google/models/veo-3.1-generate-001/operations/"
)

// account is the customer's key, as a channel has it.
func account(t *testing.T, b *sandboxtest.Sandbox) (a struct {
	Email string `json:"client_email"`
	Key   string `json:"private_key"`
	ID    string `json:"private_key_id"`
	URI   string `json:"token_uri"`
},
) {
	t.Helper()
	for _, c := range sandbox.Channels(b.URL) {
		if c.Provider == "vertex" {
			if err := json.Unmarshal([]byte(c.Credentials["service_account"]), &a); err != nil {
				t.Fatal(err)
			}
		}
	}
	return a
}

// claims are those of a good assertion.
func claims(b *sandboxtest.Sandbox, email, uri string) jwt.MapClaims {
	now := b.Clock.Now()
	return jwt.MapClaims{
		"iss": email, "scope": "https://www.googleapis.com/auth/cloud-platform", "aud": uri,
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
}

// ask asks for a token with what edit makes of a good assertion.
func ask(t *testing.T, b *sandboxtest.Sandbox, edit func(header, claims map[string]any)) sandboxtest.Answer {
	t.Helper()
	a := account(t, b)
	key, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(a.Key))
	if err != nil {
		t.Fatal(err)
	}
	said := claims(b, a.Email, a.URI)
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, said)
	token.Header["kid"] = a.ID
	edit(token.Header, said)
	signed, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {signed}}
	return b.Call(t, "POST", "/vertex/token", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, form.Encode())
}

func good(map[string]any, map[string]any) {}

func bearer(t *testing.T, b *sandboxtest.Sandbox) map[string]string {
	t.Helper()
	got := ask(t, b, good)
	if got.Status != 200 || got.Text("access_token") == "" || got.At("expires_in") != 3599.0 {
		t.Fatalf("%d %s", got.Status, got.Raw)
	}
	return map[string]string{"Authorization": "Bearer " + got.Text("access_token")}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	for name, tc := range map[string]struct {
		edit func(header, claims map[string]any)
		word string
	}{
		"another account":  {func(_, c map[string]any) { c["iss"] = "nobody@sandbox-project.iam.gserviceaccount.com" }, "invalid_grant"},
		"another key":      {func(h, _ map[string]any) { h["kid"] = "1" }, "invalid_grant"},
		"another audience": {func(_, c map[string]any) { c["aud"] = "https://oauth2.googleapis.com/token" }, "invalid_grant"},
		"another scope":    {func(_, c map[string]any) { c["scope"] = "email" }, "invalid_scope"},
		"expired":          {func(_, c map[string]any) { c["exp"] = b.Clock.Now().Add(-time.Hour).Unix() }, "invalid_grant"},
		"too long":         {func(_, c map[string]any) { c["exp"] = b.Clock.Now().Add(2 * time.Hour).Unix() }, "invalid_grant"},
		"of the future":    {func(_, c map[string]any) { c["iat"] = b.Clock.Now().Add(time.Hour).Unix() }, "invalid_grant"},
	} {
		if got := ask(t, b, tc.edit); got.Status != 400 || got.Text("error") != tc.word {
			t.Errorf("%s: %d %s", name, got.Status, got.Raw)
		}
	}
	if got := b.Call(t, "POST", "/vertex/token", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, "grant_type=password"); got.Status != 400 {
		t.Errorf("another grant: %d", got.Status)
	}
	header := bearer(t, b)
	if got := submit(t, b, header, text("")); got.Status != 200 {
		t.Errorf("with a token: %d %s", got.Status, got.Raw)
	}
	b.Clock.Advance(time.Hour + time.Second)
	forged := map[string]string{"Authorization": header["Authorization"] + "0"}
	for name, h := range map[string]map[string]string{"expired": header, "forged": forged, "none": nil} {
		if got := submit(t, b, h, text("")); got.Status != 401 || got.Text("error", "status") != "UNAUTHENTICATED" {
			t.Errorf("%s: %d %s", name, got.Status, got.Raw)
		}
	}
}

// text is a request for a video of text; directive is one's inside.
func text(directive string) m {
	prompt := "a fox"
	if directive != "" {
		prompt += " [[sandbox: " + directive + "]]"
	}
	return m{"instances": []m{{"prompt": prompt}}, "parameters": m{"generateAudio": false}}
}

func parameters(p m) m { return with(text(""), m{"parameters": with(m{"generateAudio": false}, p)}) }

func instance(i m) m { return with(text(""), m{"instances": []m{with(m{"prompt": "a fox"}, i)}}) }

func submit(t *testing.T, b *sandboxtest.Sandbox, header map[string]string, body any) sandboxtest.Answer {
	t.Helper()
	return b.Call(t, "POST", model+":predictLongRunning", header, body)
}

func TestRules(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	header := bearer(t, b)
	first := m{"bytesBase64Encoded": base64.StdEncoding.EncodeToString(sandboxtest.PNG(t, 64, 64)), "mimeType": "image/png"}
	for name, tc := range map[string]struct {
		body    any
		message string // a part of it; "" when nothing is refused
	}{
		"everything":       {m{"instances": []m{{"prompt": "a fox", "image": first, "lastFrame": first}}, "parameters": m{"sampleCount": 4, "durationSeconds": 8, "aspectRatio": "9:16", "resolution": "4k", "negativePrompt": "rain", "seed": 4294967295, "generateAudio": true, "personGeneration": "dont_allow", "resizeMode": "crop", "enhancePrompt": true}}, ""},
		"no JSON":          {"{", "payload"},
		"unknown":          {with(text(""), m{"n": 1}), "n: unknown field"},
		"no instance":      {with(text(""), m{"instances": []m{}}), "exactly one"},
		"no prompt":        {with(text(""), m{"instances": []m{{}}}), "prompt"},
		"image as another": {instance(m{"image": with(first, m{"mimeType": "image/jpeg"})}), "bytesBase64Encoded"},
		"image as GIF":     {instance(m{"image": with(first, m{"mimeType": "image/gif"})}), "mimeType"},
		"broken image":     {instance(m{"image": with(first, m{"bytesBase64Encoded": "AAAA"})}), "bytesBase64Encoded"},
		"last frame alone": {instance(m{"lastFrame": first}), "lastFrame"},
		"no sound said":    {with(text(""), m{"parameters": m{}}), "generateAudio"},
		"five videos":      {parameters(m{"sampleCount": 5}), "sampleCount"},
		"5 seconds":        {parameters(m{"durationSeconds": 5}), "durationSeconds"},
		"1080p, 6 s":       {parameters(m{"durationSeconds": 6, "resolution": "1080p"}), "durationSeconds"},
		"a seed too large": {parameters(m{"seed": 4294967296}), "seed"},
		"disallow":         {parameters(m{"personGeneration": "disallow"}), "personGeneration"},
		"plain prompt":     {parameters(m{"enhancePrompt": false}), "enhancePrompt"},
		"resized text":     {parameters(m{"resizeMode": "pad"}), "resizeMode"},
		"stored elsewhere": {parameters(m{"storageUri": "https://a.example.com"}), "storageUri"},
	} {
		got := submit(t, b, header, tc.body)
		if tc.message == "" {
			if got.Status != 200 || !strings.HasPrefix(got.Text("name"), owner) {
				t.Errorf("%s: %d %.300s", name, got.Status, got.Raw)
			}
			continue
		}
		if got.Status != 400 || got.Text("error", "status") != "INVALID_ARGUMENT" || !strings.Contains(got.Text("error", "message"), tc.message) {
			t.Errorf("%s: %d %.300s", name, got.Status, got.Raw)
		}
	}
	for path, status := range map[string]int{
		strings.Replace(model, "sandbox-project", "other", 1) + ":predictLongRunning":   403,
		strings.Replace(model, "us-central1", "us-east1", 1) + ":predictLongRunning":    404,
		strings.Replace(model, "generate-001", "generate-9", 1) + ":predictLongRunning": 404,
		model + ":predict": 404,
	} {
		if got := b.Call(t, "POST", path, header, text("")); got.Status != status {
			t.Errorf("%s: %d %s, want %d", path, got.Status, got.Raw, status)
		}
	}
}

// started submits a job and returns its name.
func started(t *testing.T, b *sandboxtest.Sandbox, header map[string]string, body any) string {
	t.Helper()
	got := submit(t, b, header, body)
	if got.Status != 200 {
		t.Fatalf("%d %s", got.Status, got.Raw)
	}
	return got.Text("name")
}

func fetch(t *testing.T, b *sandboxtest.Sandbox, header map[string]string, name string) sandboxtest.Answer {
	t.Helper()
	return b.Call(t, "POST", model+":fetchPredictOperation", header, m{"operationName": name})
}

// Of several videos some can be held back, for a reason each; they are in the answer,
// or in the customer's own bucket. A question about what is no job is refused.
func TestVideos(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	header := bearer(t, b)
	end := func(directive string, p m) sandboxtest.Answer {
		return fetch(t, b, header, started(t, b, header, with(text("duration=0, "+directive), m{"parameters": with(m{"generateAudio": false}, p)})))
	}
	if got := end("fail=moderation", m{"sampleCount": 3}); got.At("response", "raiMediaFilteredCount") != 3.0 || got.At("response", "videos") != nil || got.Text("response", "raiMediaFilteredReasons", 2) == "" {
		t.Errorf("moderation: %s", got.Raw)
	}
	got := end("filtered=2", m{"sampleCount": 3})
	video, err := base64.StdEncoding.DecodeString(got.Text("response", "videos", 0, "bytesBase64Encoded"))
	if err != nil || string(video[4:8]) != "ftyp" || got.At("response", "raiMediaFilteredCount") != 2.0 || got.At("response", "videos", 1) != nil {
		t.Errorf("filtered: %.300s", got.Raw)
	}
	if got := end("fail=internal, at=download", nil); got.Status != 500 {
		t.Errorf("internal at download: %d", got.Status)
	}
	if got := end("filtered=1", m{"storageUri": "gs://a/b/", "sampleCount": 2}); !strings.HasPrefix(got.Text("response", "videos", 0, "gcsUri"), "gs://a/b/") {
		t.Errorf("stored elsewhere: %s", got.Raw)
	}
	name := started(t, b, header, text("duration=0"))
	for _, unknown := range []string{name + "0", strings.Replace(name, "001/", "002/", 1), "operations/1"} {
		if got := fetch(t, b, header, unknown); got.Status/100 != 4 {
			t.Errorf("%s: %d %.300s", unknown, got.Status, got.Raw)
		}
	}
}
