package e2e_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/mediagate/mediagate/internal/failpoint"
)

// TestEndpointOutlivesTheProcess kills the process after the end of a task is committed and
// before any of it is sent. The next process sends the account's endpoint that end, signed with
// the endpoint's own secret, and a test event.
func TestEndpointOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: standalone, failpoint: failpoint.SettleCommitted})
	var (
		mu     sync.Mutex
		secret []byte
		got    = map[string]string{} // bodies by webhook-id
		wrong  []error
	)
	receiver := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		err = errors.Join(err, verify(secret, r.Header, body), w.contract.CheckEvent(r.Header, body))
		id := r.Header.Get("webhook-id")
		if before, ok := got[id]; ok && before != string(body) {
			err = errors.Join(err, errors.New("another body under the same id"))
		}
		if r.RequestURI != "/events?of=e2e" {
			err = errors.Join(err, fmt.Errorf("%s was called", r.RequestURI))
		}
		if err != nil {
			wrong = append(wrong, err)
		}
		got[id] = string(body)
	}))
	t.Cleanup(receiver.Close)
	call := func(method, path string, body, v any) {
		t.Helper()
		a, err := request{method: method, url: w.apiURLs[0] + "/v1/webhooks/endpoints" + path, key: w.key, body: body}.do(t.Context())
		if err == nil {
			err = a.decode(v)
		}
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	var endpoint struct {
		ID     string `json:"id"`
		Secret string `json:"secret"`
	}
	call(http.MethodPost, "", map[string]any{"url": receiver.URL + "/events?of=e2e", "events": []string{"task.completed"}}, &endpoint)
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(endpoint.Secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	secret = key
	mu.Unlock()

	task := w.submit(job{model: alpha})
	w.victim().awaitKilled(t, crashLimit)
	mu.Lock()
	early := len(got)
	mu.Unlock()
	if early != 0 {
		t.Errorf("%d events were sent before the process died", early)
	}
	w.victim().start(t)
	var test struct {
		ID string `json:"id"`
	}
	call(http.MethodPost, "/"+endpoint.ID+"/test", nil, &test)
	told := func(id, kind string) {
		t.Helper()
		eventually(t, crashLimit, "the endpoint is told of "+kind, func() error {
			var list struct {
				Data []struct {
					ID    string `json:"id"`
					State string `json:"state"`
				} `json:"data"`
			}
			if err := w.get("/v1/webhooks/endpoints/"+endpoint.ID+"/deliveries?state=delivered", w.key, &list); err != nil {
				return err
			}
			for _, d := range list.Data {
				if d.ID == id {
					return nil
				}
			}
			return errors.New("it is not delivered")
		})
		mu.Lock()
		defer mu.Unlock()
		var body struct {
			Type string `json:"type"`
			Data object `json:"data"`
		}
		if err := json.Unmarshal([]byte(got[id]), &body); err != nil || body.Type != kind || kind != "test" && body.Data.ID != task.id {
			t.Errorf("of %s it got %s (%v)", kind, got[id], err)
		}
	}
	told("evt_"+strings.TrimPrefix(task.id, "task_"), "task.completed")
	told(test.ID, "test")
	w.verify(recoverTime)
	mu.Lock()
	defer mu.Unlock()
	if len(got) != 2 || len(wrong) != 0 {
		t.Errorf("%d events were sent; wrong: %v", len(got), errors.Join(wrong...))
	}
}
