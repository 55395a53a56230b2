package webhook_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/webhook"
)

// A vector that a vendor publishes for the same scheme.
const (
	vectorSecret = "whsec_dGVzdHNlY3JldHRlc3RzZWNyZXR0ZXN0c2VjcmV0MTI="
	vectorID     = "9876543210"
	vectorTime   = 1781080794
	vectorBody   = `{"id":"1234567890","status":"succeeded","message":"","create_time":1781080778802,"update_time":1781080794151}`
	vectorWant   = "v1,UsKlJP00XoQyOn410NM9xv34sP+Gl0jnOO9Lcpr7NJ4="
)

func TestSignVector(t *testing.T) {
	t.Parallel()
	got, err := webhook.Sign(vectorSecret, vectorID, time.Unix(vectorTime, 999_000_000), []byte(vectorBody))
	if err != nil || got != vectorWant {
		t.Errorf("Sign = %q, %v; want %q", got, err, vectorWant)
	}
}

func TestParseSecret(t *testing.T) {
	t.Parallel()
	b64 := func(n int) string { return base64.StdEncoding.EncodeToString(make([]byte, n)) }
	tests := map[string]struct {
		secret string
		ok     bool
	}{
		"32 bytes":       {"whsec_" + b64(32), true},
		"31 bytes":       {"whsec_" + b64(31), false},
		"33 bytes":       {"whsec_" + b64(33), false},
		"no prefix":      {b64(32), false},
		"other prefix":   {"WHSEC_" + b64(32), false},
		"not base64":     {"whsec_" + strings.Repeat("!", 44), false},
		"url alphabet":   {"whsec_" + strings.Repeat("_", 43) + "=", false},
		"line break":     {"whsec_" + b64(32)[:20] + "\n" + b64(32)[20:] + "x", false},
		"trailing bits":  {"whsec_" + strings.TrimSuffix(b64(32), "A=") + "B=", false},
		"prefix only":    {"whsec_", false},
		"empty":          {"", false},
		"leading spaces": {" whsec_" + b64(32), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, err := webhook.ParseSecret(tt.secret)
			if (err == nil) != tt.ok {
				t.Fatalf("error %v, want ok %t", err, tt.ok)
			}
			if err == nil {
				if len(key) != 32 {
					t.Errorf("%d bytes", len(key))
				}
				return
			}
			if !mediagate.Is(err, mediagate.KindInternal) {
				t.Errorf("kind %s", mediagate.KindOf(err))
			}
			if tt.secret != "" && len(tt.secret) > 6 && strings.Contains(err.Error(), tt.secret[6:]) {
				t.Errorf("the error repeats the secret: %v", err)
			}
		})
	}
}
