package kernel_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

func outage(t *testing.T, b *sandboxtest.Sandbox, in m) {
	t.Helper()
	if got := b.Call(t, "POST", "/_sandbox/outage", nil, in); got.Status != 204 {
		t.Fatalf("%v: %d %s", in, got.Status, got.Raw)
	}
}

// An outage affects one vendor, or one key of a vendor. Calls during it have no effect.
func TestOutage(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), sandboxtest.NewClock()
	b := sandboxtest.OpenIn(t, dir, c, nil)
	submit := func(key string) int {
		t.Helper()
		return b.Call(t, "POST", "/kling/v1/videos/text2video", map[string]string{"Authorization": "Bearer " + key}, textVideo()).Status
	}
	const key, second = "sandbox-kling-api-key", "sandbox-kling-api-key@acme"
	tokenOf := func(issuer string) string {
		now := c.Now()
		claims := jwt.MapClaims{"iss": issuer, "exp": now.Add(time.Hour).Unix(), "nbf": now.Unix()}
		token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte("sandbox-secret-key-of-32-characters"))
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	outage(t, b, m{"provider": "kling", "key": second, "mode": "error"})
	if got := [...]int{submit(key), submit(second), submit(tokenOf("sandbox-access-key"))}; got != [...]int{200, 500, 200} {
		t.Errorf("an outage of one key: %v", got)
	}
	outage(t, b, m{"provider": "kling", "key": "sandbox-access-key", "mode": "error"})
	if got := [...]int{submit(key), submit(tokenOf("sandbox-access-key")), submit(tokenOf("sandbox-access-key@acme"))}; got != [...]int{200, 500, 200} {
		t.Errorf("an outage of one token's issuer: %v", got)
	}
	outage(t, b, m{"provider": "kling", "mode": "error"})
	if got := submit(key); got != 500 {
		t.Errorf("an outage of all keys: %d", got)
	}
	if got := generate(t, b, image("a fox")); got.Status != 200 {
		t.Errorf("another vendor: %d %s", got.Status, got.Raw)
	}
	made := len(b.Jobs(t, "?provider=kling"))
	dir = killed(t, dir)
	b = sandboxtest.OpenIn(t, dir, c, nil)
	if got := submit(key); got != 500 || len(b.Jobs(t, "?provider=kling")) != made {
		t.Errorf("after a restart: %d, %d jobs of %d", got, len(b.Jobs(t, "?provider=kling")), made)
	}
	for _, o := range []m{{"provider": "kling", "mode": "off"}, {"provider": "kling", "key": second, "mode": "off"}} {
		outage(t, b, o)
	}
	if got := [...]int{submit(key), submit(second)}; got != [...]int{200, 200} {
		t.Errorf("once it is over: %v", got)
	}
	b = sandboxtest.OpenIn(t, killed(t, dir), c, nil)
	if got := submit(key); got != 200 {
		t.Errorf("over, and after a restart: %d", got)
	}
}

func TestOutageHangs(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	outage(t, b, m{"provider": "kling", "mode": "hang"})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.URL+"/kling/v1/videos/text2video/1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := b.HTTP.Do(req); err == nil {
		_ = resp.Body.Close()
		t.Errorf("an answer: %d", resp.StatusCode)
	} else if !strings.Contains(err.Error(), "deadline") {
		t.Errorf("not held: %v", err)
	}
	if len(b.Jobs(t, "")) != 0 {
		t.Error("a job was made")
	}
	if got := b.Call(t, "GET", "/_sandbox/calls?provider=kling", nil, nil); got.At("calls", 0, "status") != 0.0 {
		t.Errorf("calls %s", got.Raw)
	}
}

func TestOutageRefusals(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	for _, bad := range []m{
		{}, {"provider": "kling"}, {"provider": "nobody", "mode": "error"}, {"provider": "kling", "mode": "slow"}, {"provider": "kling", "mode": "error", "x": 1},
	} {
		if got := b.Call(t, "POST", "/_sandbox/outage", nil, bad); got.Status != 400 || got.Text("error") == "" {
			t.Errorf("%v: %d %s", bad, got.Status, got.Raw)
		}
	}
}
