package sandbox_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mediagate/mediagate/sandbox"
	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

type m = map[string]any

// customer is who vendors call back.
type customer struct {
	mu     sync.Mutex
	bodies []m
	deaf   bool // it answers no challenge
}

func (c *customer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	var body m
	_ = json.Unmarshal(raw, &body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodies = append(c.bodies, body)
	if body["challenge"] != nil && !c.deaf {
		_, _ = w.Write(raw)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// words are what it was told, by the names of a field.
func (c *customer) words(path ...string) (words []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, body := range c.bodies {
		var at any = body
		for _, name := range path {
			object, _ := at.(m)
			at = object[name]
		}
		if word, ok := at.(string); ok {
			words = append(words, word)
		}
	}
	return words
}

// Each vendor tells of its jobs in its own words, at the changes that it tells of.
func TestCallbacks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		path, scheme, key, field string
		body                     m
		word                     []string
		want                     []string
		deaf                     bool
	}{
		"kling": {
			"/kling/v1/videos/text2video", "Bearer ", "api_key", "callback_url",
			m{"model_name": "kling-v3", "prompt": "a"},
			[]string{"task_status"},
			[]string{"submitted", "processing", "succeed"},
			false,
		},
		"vidu": {
			"/vidu/ent/v2/text2video", "Token ", "api_key", "callback_url",
			m{"model": "viduq3-turbo", "prompt": "a"},
			[]string{"state"},
			[]string{"processing", "success"},
			false,
		},
		"minimax": {
			"/minimax/v1/video_generation", "Bearer ", "api_key", "callback_url",
			m{"model": "MiniMax-Hailuo-02", "prompt": "a"},
			[]string{"status"},
			[]string{"processing", "success"},
			false,
		},
		"minimax, deaf": {
			"/minimax/v1/video_generation", "Bearer ", "api_key", "callback_url",
			m{"model": "MiniMax-Hailuo-02", "prompt": "a"},
			[]string{"status"},
			nil, true,
		},
		"sunoapi": {
			"/sunoapi/api/v1/generate", "Bearer ", "api_key", "callBackUrl",
			m{"prompt": "a", "customMode": false, "instrumental": false, "model": "V4"},
			[]string{"data", "callbackType"},
			[]string{"text", "first", "complete"},
			false,
		},
		"acedata": {
			"/acedata/suno/audios", "Bearer ", "api_key", "callback_url",
			m{"prompt": "a", "async": true, "model": "chirp-v5", "custom": false},
			[]string{"data", "", ""},
			nil, false,
		},
		"midjourney": {
			"/midjourney/mj/submit/imagine", "Bearer ", "api_secret", "notifyHook",
			m{"prompt": "a"},
			[]string{"status"},
			[]string{"SUBMITTED", "IN_PROGRESS", "SUCCESS"},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sandboxtest.Open(t)
			c := &customer{deaf: test.deaf}
			server := httptest.NewServer(c)
			t.Cleanup(server.Close)
			test.body[test.field] = server.URL + "/callbacks/x"
			key := ""
			for _, channel := range sandbox.DefaultAccounts() {
				if path := "/" + channel.Provider + "/"; len(test.path) > len(path) && test.path[:len(path)] == path {
					key = channel.Credentials[test.key]
				}
			}
			if got := b.Call(t, "POST", test.path, map[string]string{"Authorization": test.scheme + key, "mj-api-secret": key}, test.body); got.Status != 200 {
				t.Fatalf("%d %s", got.Status, got.Raw)
			}
			until(t, func() bool {
				b.Clock.Advance(5 * time.Millisecond) // as time goes
				if test.deaf || test.want == nil {
					c.mu.Lock()
					defer c.mu.Unlock()
					return len(c.bodies) > 0
				}
				return slices.Contains(c.words(test.word...), test.want[len(test.want)-1])
			})
			if got := slices.Compact(c.words(test.word...)); !slices.Equal(got, test.want) {
				t.Errorf("told %v, want %v", got, test.want)
			}
		})
	}
}

func until(t *testing.T, ok func() bool) {
	t.Helper()
	for range 3000 {
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("it does not happen")
}
