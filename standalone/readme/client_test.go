package readme_test

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate/internal/npmtest"
)

// TestStandardWebhooks runs the receiver that docs/api.md shows, with the library of the
// scheme's authors. The receiver accepts the gateway's webhooks and refuses forged ones.
func TestStandardWebhooks(t *testing.T) {
	t.Parallel()
	receiver := npmtest.Install(t, "receiver", "")
	code := blocks(t, "docs/api.md", "js receiver")[0]
	if err := os.WriteFile(filepath.Join(receiver, "receiver.mjs"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}

	p := start(t)
	var secret struct {
		Secret string `json:"secret"`
	}
	p.call(t.Context(), t, http.MethodGet, "/v1/webhooks/secret", "", &secret)
	address := "127.0.0.1:" + strconv.Itoa(port(t))
	printed := receive(t, receiver, "WEBHOOK_SECRET="+secret.Secret, "PORT="+address[strings.Index(address, ":")+1:])
	hook := "http://" + address + "/hooks"
	if status := forge(t, hook); status != http.StatusUnauthorized {
		t.Errorf("a forged callback is answered %d, want 401", status)
	}
	ended := p.image(t.Context(), t, map[string]any{"webhook": hook})
	limit := time.After(30 * time.Second)
	select {
	case line := <-printed:
		if want := ended.ID + " completed"; line != want {
			t.Errorf("the receiver printed %q, want %q", line, want)
		}
	case <-limit:
		t.Fatalf("nothing was delivered: %+v", p.task(t.Context(), t, ended.ID).Webhook)
	}
	for ended.Webhook.State == "pending" { // until the answer is recorded
		select {
		case <-time.After(20 * time.Millisecond):
		case <-limit:
			t.Fatal("the delivery is not recorded")
		}
		ended = p.task(t.Context(), t, ended.ID)
	}
	if ended.Webhook.State != "delivered" {
		t.Errorf("webhook %+v, want delivered", ended.Webhook)
	}
}

// receive runs the receiver in the folder until the test ends. The channel receives each line
// that the receiver prints.
func receive(t *testing.T, folder string, env ...string) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	node := exec.CommandContext(ctx, "node", "receiver.mjs")
	node.Dir, node.Env, node.Stderr = folder, append(os.Environ(), env...), os.Stderr
	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 16)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			select {
			case lines <- scanner.Text():
			case <-ctx.Done():
			}
		}
		_ = node.Wait() // returns an error, because the process is killed
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return lines
}

// forge sends a callback with an invalid signature as soon as the receiver listens.
func forge(t *testing.T, hook string) (status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, hook+"/callback", strings.NewReader(`{"id":"task_1"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("webhook-id", "task_1")
		req.Header.Set("webhook-timestamp", strconv.FormatInt(time.Now().Unix(), 10))
		req.Header.Set("webhook-signature", "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			if err := resp.Body.Close(); err != nil {
				t.Fatal(err)
			}
			return resp.StatusCode
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the receiver does not listen: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
