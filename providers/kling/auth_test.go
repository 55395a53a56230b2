package kling

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

func TestTokenClaims(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := newAuthorizer(credentials{access: mediagate.NewSecret("AK"), secret: mediagate.NewSecret("SK")}, func() time.Time { return now })
	token, err := m.token()
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(token, ".")
	var got []map[string]any
	for _, part := range parts[:2] {
		b, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(b, &m); err != nil {
			t.Fatal(err)
		}
		got = append(got, m)
	}
	want := []map[string]any{
		{"alg": "HS256", "typ": "JWT"},
		{"iss": "AK", "exp": float64(now.Unix() + 1800), "nbf": float64(now.Unix() - 5)},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("header and claims (-want +got):\n%s", d)
	}
	_, err = jwt.Parse(token, func(*jwt.Token) (any, error) { return []byte("SK"), nil },
		jwt.WithTimeFunc(func() time.Time { return now }))
	if err != nil {
		t.Errorf("the signature is invalid: %v", err)
	}
}

func TestTokenIsKeptWhileFresh(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		later time.Duration
		same  bool
	}{
		"at once":               {0, true},
		"just before renewal":   {25*time.Minute - time.Second, true},
		"five minutes to go":    {25 * time.Minute, false},
		"expired":               {time.Hour, false},
		"the clock was set off": {-time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := start
			m := newAuthorizer(credentials{access: mediagate.NewSecret("AK"), secret: mediagate.NewSecret("SK")}, func() time.Time { return now })
			first, err := m.token()
			if err != nil {
				t.Fatal(err)
			}
			now = start.Add(tc.later)
			second, err := m.token()
			if err != nil {
				t.Fatal(err)
			}
			if (first == second) != tc.same {
				t.Errorf("same token = %v, want %v", first == second, tc.same)
			}
		})
	}
}

// TestRenewDropsOnlyTheStaleToken checks that renew keeps a token that another caller has renewed.
func TestRenewDropsOnlyTheStaleToken(t *testing.T) {
	t.Parallel()
	m := &minter{access: mediagate.NewSecret("AK"), secret: mediagate.NewSecret("SK"), now: time.Now, current: mediagate.NewSecret("new"), made: time.Now()}
	if !m.renew("old") || m.current.Reveal() != "new" {
		t.Errorf("current = %q after the renewal of an older token", m.current)
	}
	if !m.renew("new") || m.current.Reveal() != "" {
		t.Errorf("current = %q after its renewal", m.current)
	}
	if (apiKey{mediagate.NewSecret("k")}).renew("k") {
		t.Error("an API key cannot be renewed")
	}
}

// TestAuthorizedRepeatsOnce checks that a call is repeated once if the vendor refuses its token.
func TestAuthorizedRepeatsOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		codes []string
		want  string
	}{
		"accepted":       {[]string{"0"}, "0"},
		"expired once":   {[]string{"1004", "0"}, "0"},
		"expired always": {[]string{"1004", "1004"}, "1004"},
		"invalid once":   {[]string{"1002", "0"}, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			a := &Adapter{auth: newAuthorizer(credentials{access: mediagate.NewSecret("AK"), secret: mediagate.NewSecret("SK")}, func() time.Time {
				now = now.Add(time.Second)
				return now
			})}
			var tokens []string
			_, env, err := a.authorized(func(h http.Header) (vendorhttp.Answer, error) {
				tokens = append(tokens, h.Get("Authorization"))
				return vendorhttp.Answer{Body: []byte(`{"code":` + tc.codes[len(tokens)-1] + `}`)}, nil
			})
			if err != nil || string(env.Code) != tc.want || len(tokens) != len(tc.codes) {
				t.Fatalf("code %v after %d calls, %v", env, len(tokens), err)
			}
			if len(tokens) == 2 && tokens[0] == tokens[1] {
				t.Error("the repetition used the refused token")
			}
		})
	}
}
