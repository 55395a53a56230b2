package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/mediagate/mediagate/client"
)

// answers are those of a gateway, one after the other; nil: the connection breaks.
type answers struct {
	list  []*http.Response
	paths []string
	keys  []string
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	a.paths, a.keys = append(a.paths, r.URL.RequestURI()), append(a.keys, r.Header.Get("Idempotency-Key"))
	if r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	next := a.list[0]
	a.list = a.list[1:]
	switch next {
	case nil:
		return nil, errors.New("reset by peer")
	case silent:
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if body, ok := next.Body.(*slow); ok {
		body.ctx = r.Context()
	}
	return next, nil
}

// silent is a connection that is taken, and on which nothing comes.
var silent = new(http.Response)

// slow is a body that comes byte for byte, and ends with its request.
type slow struct {
	io.Reader
	pause time.Duration
	ctx   context.Context // of the request
}

// slowly is an answer whose body comes so slowly.
func slowly(pause time.Duration, text string) *http.Response {
	r := says(200, "")
	r.Body = &slow{Reader: strings.NewReader(text), pause: pause}
	return r
}

func (s *slow) Read(p []byte) (int, error) {
	select {
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	case <-time.After(s.pause):
		return s.Reader.Read(p[:1])
	}
}

func (*slow) Close() error { return nil }

// says is an answer; header are name and value in turns.
func says(status int, body string, header ...string) *http.Response {
	r := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

const (
	ack  = `{"code":200,"data":[{"status":"submitted","task_id":"task_1"}]}`
	away = `{"error":{"message":"away","request_id":"r"}}`
	done = `{"code":200,"data":{"id":"task_1","status":"completed","progress":100,"cost":0.56,"result":{"videos":[{"url":["https://s3/a"],"mime_type":"video/mp4","size_bytes":3,"expires_at":1}]}}}`
)

// A submit whose fate is unknown is asked for again under the same key, after the pause
// that the gateway asks for; one that was refused is not.
func TestSubmitAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		list   []*http.Response
		calls  int
		waited time.Duration
		says   string // by the error, empty for none
	}{
		"at once":           {[]*http.Response{says(200, ack)}, 1, 0, ""},
		"a lost answer":     {[]*http.Response{nil, says(200, ack)}, 2, 500 * time.Millisecond, ""},
		"away":              {[]*http.Response{says(503, away), says(502, "<html>"), says(200, ack)}, 3, 1500 * time.Millisecond, ""},
		"too many":          {[]*http.Response{says(429, away, "Retry-After", "7"), says(200, ack)}, 2, 7 * time.Second, ""},
		"asked for a day":   {[]*http.Response{says(429, away, "Retry-After", "86400"), says(200, ack)}, 2, time.Minute, ""},
		"not to be asked":   {[]*http.Response{says(504, away, "X-Should-Retry", "false")}, 1, 0, "away (504, request r)"},
		"refused":           {[]*http.Response{says(402, `{"error":{"message":"no money","reason":"quota_not_enough","request_id":"r"}}`)}, 1, 0, "no money (402, quota_not_enough, request r)"},
		"a song's":          {[]*http.Response{says(400, `{"error":{"message":"n","param":"bpm","code":"invalid_request","request_id":"r"}}`)}, 1, 0, "(400, invalid_request of bpm, request r)"},
		"a bad field":       {[]*http.Response{says(400, `{"error":{"message":"n","param":"seed","reason":"out_of_range","request_id":"r"}}`)}, 1, 0, "(400, out_of_range of seed, request r)"},
		"away for good":     {[]*http.Response{nil, nil, nil, nil, nil, nil}, 6, 15500 * time.Millisecond, "its idempotency key k tells"},
		"no form at all":    {[]*http.Response{says(404, "<html>", "X-Request-Id", "q")}, 1, 0, "Not Found (404, request q)"},
		"no acknowledgment": {[]*http.Response{says(200, "{}")}, 1, 0, `names no task: "{}"; whether the task was made is not known, and its idempotency key k tells`},
	} {
		synctest.Test(t, func(t *testing.T) {
			from, began := &answers{list: test.list}, time.Now()
			c := client.Client{URL: "http://gateway/", Key: "key", HTTP: &http.Client{Transport: from}}
			id, err := c.Submit(t.Context(), client.Request{Model: "m", Endpoint: "/v1/videos/generations", IdempotencyKey: "k"})
			if test.says == "" && (err != nil || id != "task_1") || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("%s: %q, %v, want %q", name, id, err, test.says)
			}
			if len(from.keys) != test.calls || strings.Trim(strings.Join(from.keys, ""), "k") != "" {
				t.Errorf("%s: the calls came with %q, want %d with k", name, from.keys, test.calls)
			}
			if waited := time.Since(began); waited != test.waited {
				t.Errorf("%s: it took %s, want %s", name, waited, test.waited)
			}
		})
	}
}

// Two requests without a key have two.
func TestKeysOfTheirOwn(t *testing.T) {
	t.Parallel()
	from := &answers{list: []*http.Response{says(200, ack), says(200, ack)}}
	c := client.Client{URL: "http://gateway", HTTP: &http.Client{Transport: from}}
	for range 2 {
		if _, err := c.Submit(t.Context(), client.Request{Model: "m", Endpoint: "/v1/videos/generations"}); err != nil {
			t.Fatal(err)
		}
	}
	if from.keys[0] == "" || from.keys[0] == from.keys[1] {
		t.Errorf("the keys are %q", from.keys)
	}
}

// A run goes where the model's contract says, hears of progress and outlasts a gateway
// that is away; of a task that did not complete it is told.
func TestRun(t *testing.T) {
	t.Parallel()
	pending := func(progress int) *http.Response {
		return says(200, fmt.Sprintf(`{"data":{"id":"task_1","status":"processing","progress":%d}}`, progress))
	}
	for name, test := range map[string]struct {
		list []*http.Response // after the submit
		says string
	}{
		"completed": {[]*http.Response{pending(0), nil, says(503, away), pending(40), says(200, done)}, ""},
		"failed":    {[]*http.Response{says(200, `{"data":{"id":"task_1","status":"failed","error":{"code":"generation_failed","message":"no"}}}`)}, "task task_1 failed: no (generation_failed)"},
		"cancelled": {[]*http.Response{says(200, `{"data":{"id":"task_1","status":"cancelled"}}`)}, "task task_1 is cancelled"},
		"forgotten": {[]*http.Response{says(400, `{"error":{"message":"invalid task id"}}`)}, "task task_1 goes on: invalid task id (400)"},
	} {
		synctest.Test(t, func(t *testing.T) {
			from := &answers{list: append([]*http.Response{says(200, `{"endpoint":"/v1/images/generations"}`), says(200, ack)}, test.list...)}
			c := client.Client{URL: "http://gateway", Key: "key", HTTP: &http.Client{Transport: from}}
			var heard []int
			task, err := c.Run(t.Context(), client.Request{Model: "a/b"}, func(t client.Task) { heard = append(heard, t.Progress) })
			if from.paths[0] != "/v1/model-schema?model=a%2Fb" || from.paths[1] != "/v1/images/generations" || from.paths[2] != "/v1/tasks/task_1" || len(from.list) > 0 {
				t.Errorf("%s: it asked for %q", name, from.paths)
			}
			if test.says != "" {
				if err == nil || err.Error() != test.says || task.ID != "task_1" {
					t.Errorf("%s: %+v, %v", name, task, err)
				}
				return
			}
			want := client.File{N: 1, URL: "https://s3/a", MediaType: "video/mp4", Size: 3, ExpiresAt: time.Unix(1, 0)}
			if err != nil || len(task.Files) != 1 || task.Files[0] != want || task.Cost != "0.56" || fmt.Sprint(heard) != "[0 40]" {
				t.Errorf("%s: %+v, %v, heard %v", name, task, err, heard)
			}
		})
	}
}

// A wait outlasts a gateway that is away for minutes, and not one that stays away.
func TestPatience(t *testing.T) {
	t.Parallel()
	for lost, wait := range map[int]struct {
		ended bool
		most  time.Duration
	}{60: {true, 4 * time.Minute}, 600: {false, 11 * time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			from, began := &answers{list: append(make([]*http.Response, lost), says(200, done))}, time.Now()
			c := client.Client{URL: "http://gateway", HTTP: &http.Client{Transport: from}}
			task, err := c.Wait(t.Context(), "task_1", nil)
			if (err == nil) != wait.ended || wait.ended && task.Status != "completed" || time.Since(began) > wait.most {
				t.Errorf("after %d lost answers: %+v, %v, %s", lost, task, err, time.Since(began))
			}
		})
	}
}

// Whoever leaves a wait is let go at once, in a pause as well.
func TestLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		from := &answers{list: []*http.Response{says(429, away, "Retry-After", "30")}}
		c := client.Client{URL: "http://gateway", HTTP: &http.Client{Transport: from}}
		began := time.Now()
		if _, err := c.Wait(ctx, "task_1", nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 3*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
	synctest.Test(t, func(t *testing.T) { // nor does a transport that answers all the same hold it
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		c := client.Client{URL: "http://gateway", HTTP: &http.Client{Transport: always(`{"data":{"id":"task_1","status":"pending"}}`)}}
		began := time.Now()
		if _, err := c.Wait(ctx, "task_1", nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 3*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// always is a gateway that gives one answer, whether somebody waits for it or not.
type always string

func (a always) RoundTrip(*http.Request) (*http.Response, error) { return says(200, string(a)), nil }

// Files are saved whole, and the key stays with the gateway.
func TestSave(t *testing.T) {
	t.Parallel()
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "":
			http.Error(w, "two credentials", http.StatusBadRequest)
		case r.URL.Path == "/broken":
			w.Header().Set("Content-Length", "9")
			_, _ = w.Write([]byte("half"))
		case r.URL.Path == "/gone":
			http.NotFound(w, r)
		default:
			_, _ = w.Write([]byte(r.URL.Path))
		}
	}))
	defer store.Close()
	c, folder := client.Client{URL: "http://gateway", Key: "key"}, t.TempDir()
	task := client.Task{ID: "task_1", Files: []client.File{{N: 1, URL: store.URL + "/a", MediaType: "video/mp4"}, {N: 2, URL: store.URL + "/b"}}}
	paths, err := c.Save(t.Context(), task, folder)
	if err != nil || len(paths) != 2 || paths[0] != filepath.Join(folder, "task_1-1.mp4") || paths[1] != filepath.Join(folder, "task_1-2") {
		t.Fatalf("%q, %v", paths, err)
	}
	if text, err := os.ReadFile(paths[1]); err != nil || string(text) != "/b" {
		t.Errorf("%s, %v", text, err)
	}
	for _, path := range []string{"/broken", "/gone"} {
		task := client.Task{ID: "task_2", Files: []client.File{{N: 1, URL: store.URL + path}}}
		if paths, err := c.Save(t.Context(), task, folder); err == nil || len(paths) > 0 {
			t.Errorf("%s: %q, %v", path, paths, err)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 2 {
		t.Errorf("%v, %v are left", left, err)
	}
}

// An upload is one file, and what the gateway says of it is passed on.
func TestUpload(t *testing.T) {
	t.Parallel()
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file, header, err := r.FormFile("file")
		if err != nil || r.URL.Path != "/v1/uploads/images" || r.Header.Get("Authorization") != "Bearer key" {
			http.Error(w, `{"error":{"message":"no"}}`, http.StatusBadRequest)
			return
		}
		text, _ := io.ReadAll(file)
		_, _ = fmt.Fprintf(w, `{"url":"https://gw/%s/%s"}`, header.Filename, text)
	}))
	defer gateway.Close()
	c := client.Client{URL: gateway.URL, Key: "key"}
	if address, err := c.Upload(t.Context(), client.Images, "cat.png", strings.NewReader("meow")); err != nil || address != "https://gw/cat.png/meow" {
		t.Errorf("%q, %v", address, err)
	}
	c.Key = "another"
	if _, err := c.Upload(t.Context(), client.Images, "cat.png", strings.NewReader("meow")); err == nil || err.Error() != "no (400)" {
		t.Error(err)
	}
}

// What a gateway signs is a task; what anybody changed, or sent again later, is none.
func TestVerifyWebhook(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"id":"task_1","status":"failed","error":{"code":"generation_failed","message":"no"}}`)
	signed := func(at time.Time) http.Header {
		signature, err := hook.Sign("task_1", at, body)
		if err != nil {
			t.Fatal(err)
		}
		header := http.Header{}
		header.Set("Webhook-Id", "task_1")
		header.Set("Webhook-Timestamp", fmt.Sprint(at.Unix()))
		header.Set("Webhook-Signature", "v1,b2xk "+signature)
		return header
	}
	if task, err := client.VerifyWebhook(secret, signed(time.Now()), body); err != nil || task.ID != "task_1" || task.Failure == nil || task.Failure.Code != "generation_failed" {
		t.Errorf("%+v, %v", task, err)
	}
	for name, test := range map[string]struct {
		header http.Header
		body   []byte
	}{
		"another body": {signed(time.Now()), bytes.Replace(body, []byte("failed"), []byte("done"), 1)},
		"an hour old":  {signed(time.Now().Add(-time.Hour)), body},
		"no headers":   {http.Header{}, body},
	} {
		if task, err := client.VerifyWebhook(secret, test.header, test.body); err == nil {
			t.Errorf("%s: %+v", name, task)
		}
	}
}

// A redirect would take the key along, to a port of the same host or one below it.
func TestRedirect(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s came with %q", r.Method, r.URL, r.Header.Get("Authorization"))
	}))
	defer other.Close()
	for _, status := range []int{http.StatusMovedPermanently, http.StatusTemporaryRedirect} {
		gateway := httptest.NewServer(http.RedirectHandler(other.URL, status))
		defer gateway.Close()
		c := client.Client{URL: gateway.URL, Key: "key"}
		_, err := c.Submit(t.Context(), client.Request{Model: "m", Endpoint: "/v1/videos/generations"})
		if refused, ok := errors.AsType[*client.Error](err); !ok || refused.Status != status || !strings.Contains(err.Error(), other.URL) {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// noTasks are answers with the status 200 that are not the task task_1.
var noTasks = map[string]string{
	"a page":            "<html>",
	"nothing":           "",
	"something else":    `{"ok":true}`,
	"no task":           `{"data":null}`,
	"another task":      strings.ReplaceAll(done, "task_1", "task_2"),
	"half a task":       done[:len(done)/2],
	"a task of no kind": `{"data":{"id":"task_1"}}`,
}

// An answer that is not the task counts as a lost one: the client asks again after a pause,
// and says after its last try what came. What makes or ends something is not asked for again.
func TestNoTask(t *testing.T) {
	t.Parallel()
	for name, bad := range noTasks {
		for call, test := range map[string]struct {
			do     func(ctx context.Context, c *client.Client) error
			good   bool // comes as the third answer
			calls  int  // at most
			waited time.Duration
			says   string // by the error, empty for none
		}{
			"Wait":           {waits, true, 3, 1500 * time.Millisecond, ""},
			"a wait in vain": {waits, false, 250, 11 * time.Minute, "the answer is not the task task_1: "},
			"Task": {func(ctx context.Context, c *client.Client) error {
				_, err := c.Task(ctx, "task_1")
				return err
			}, false, 6, 15500 * time.Millisecond, "the answer is not the task task_1: "},
			"TaskAfter": {func(ctx context.Context, c *client.Client) error {
				t, err := c.TaskAfter(ctx, "task_1", 40*time.Second)
				if err == nil && !t.Ended() {
					err = fmt.Errorf("it returned %+v", t)
				}
				return err
			}, true, 3, 1500 * time.Millisecond, ""},
			"Cancel": {func(ctx context.Context, c *client.Client) error { return c.Cancel(ctx, "task_1") }, true, 1, 0, "the answer is not the task task_1: "},
			"Submit": {submits, true, 1, 0, "idempotency key k tells"},
		} {
			if call == "Submit" && (name == "another task" || name == "a task of no kind") {
				continue // an acknowledgement is no task
			}
			synctest.Test(t, func(t *testing.T) {
				from, began := &answers{}, time.Now()
				for range test.calls + 3 {
					from.list = append(from.list, says(200, bad))
				}
				if test.good {
					from.list[2] = says(200, done)
				}
				err := test.do(t.Context(), &client.Client{URL: "http://gateway", HTTP: &http.Client{Transport: from}})
				if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
					t.Errorf("%s for %s: %v, want %q", name, call, err, test.says)
				}
				if waited := time.Since(began); len(from.paths) > test.calls || waited > test.waited {
					t.Errorf("%s for %s: %d calls in %s", name, call, len(from.paths), waited)
				}
			})
		}
	}
}

func waits(ctx context.Context, c *client.Client) error {
	_, err := c.Wait(ctx, "task_1", nil)
	return err
}

func submits(ctx context.Context, c *client.Client) error {
	_, err := c.Submit(ctx, client.Request{Model: "m", Endpoint: "/v1/videos/generations", IdempotencyKey: "k"})
	return err
}

// A server that takes a call and is silent, before its answer or within it, holds nobody: the
// call counts as lost.
func TestSilence(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do    func(ctx context.Context, c *client.Client) error
		again string        // the answer after two silent ones; empty: the call is not repeated
		bound time.Duration // of one call
	}{
		"Wait":   {waits, done, 30 * time.Second},
		"Submit": {submits, ack, 30 * time.Second},
		"a call of its own": {func(ctx context.Context, c *client.Client) error {
			_, err := c.Call(ctx, http.MethodGet, "/v1/tasks/task_1?wait=60", nil, nil)
			return err
		}, done, 90 * time.Second},
		"Cancel": {func(ctx context.Context, c *client.Client) error { return c.Cancel(ctx, "task_1") }, "", 30 * time.Second},
		"Upload at 16 KiB a second": {func(ctx context.Context, c *client.Client) error {
			_, err := c.Upload(ctx, client.Images, "a", strings.NewReader(strings.Repeat("a", 16<<14)))
			return err
		}, "", 47 * time.Second},
		"Save": {func(ctx context.Context, c *client.Client) error {
			_, err := c.Save(ctx, client.Task{ID: "task_1", Files: []client.File{{N: 1, URL: "http://s3/a"}}}, t.TempDir())
			return err
		}, "", 30 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			from, began := &answers{list: []*http.Response{silent, slowly(time.Hour, "film"), says(200, test.again)}}, time.Now()
			err := test.do(t.Context(), &client.Client{URL: "http://gateway", HTTP: &http.Client{Transport: from}})
			bound := test.bound
			if test.again != "" {
				bound += 30*time.Second + 1500*time.Millisecond
			} else if err != nil && strings.Contains(err.Error(), "the server is silent") {
				err = nil
			} else {
				err = fmt.Errorf("no silence: %w", err)
			}
			if waited := time.Since(began); err != nil || waited > bound+time.Second { // a body takes its time
				t.Errorf("%s: %v after %s, want it after %s", name, err, waited, bound)
			}
		})
	}
}

// A wait asks again in time though its answer comes byte for byte. A file comes as slowly as
// it likes.
func TestTrickle(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		from, began := &answers{list: []*http.Response{slowly(20*time.Second, done), says(200, done), slowly(20*time.Second, "film")}}, time.Now()
		c := client.Client{URL: "http://gateway", HTTP: &http.Client{Transport: from}}
		task, err := c.Wait(t.Context(), "task_1", nil)
		if waited := time.Since(began); err != nil || waited > time.Minute {
			t.Errorf("the wait ended after %s, %v", waited, err)
		}
		if _, err := c.Save(t.Context(), task, folder); err != nil {
			t.Error(err)
		}
	})
}

// Who is answered at once where it asked to wait, or by a page, asks once in a second.
func TestWaitPauses(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"<html>", `{"data":{"id":"task_1","status":"pending"}}`} {
		synctest.Test(t, func(t *testing.T) {
			from := &answers{}
			for range 100 {
				from.list = append(from.list, says(200, answer))
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			c := client.Client{URL: "http://gateway", Key: "key", HTTP: &http.Client{Transport: from}}
			if _, err := c.Wait(ctx, "task_1", nil); err == nil || len(from.paths) > 15 {
				t.Errorf("%s: %d calls in ten seconds, %v", answer, len(from.paths), err)
			}
		})
	}
}

// An id is part of a file's name and of commands that people repeat: what is none is
// refused.
func TestIDs(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", "..", "a/../b", "task_\x1b[2J", "a\nb", "$(id)", "a b"} {
		ack := fmt.Sprintf(`{"data":[{"task_id":%q}]}`, strings.ReplaceAll(id, "\x1b", " "))
		c := client.Client{URL: "http://gateway", Key: "key", HTTP: &http.Client{Transport: &answers{list: []*http.Response{says(200, ack), says(200, "film")}}}}
		if got, err := c.Submit(t.Context(), client.Request{Model: "m", Endpoint: "/v1/videos/generations"}); err == nil {
			t.Errorf("submitted as %q", got)
		}
		if paths, err := c.Save(t.Context(), client.Task{ID: id, Files: []client.File{{N: 1, URL: "http://s3/a"}}}, t.TempDir()); err == nil {
			t.Errorf("saved as %q", paths)
		}
	}
}

// A speech is charged and has no task: a submit does not ask for one.
func TestSubmitOfNoTask(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{"/v1/audio/speech", "/v1/keys", "/v1/videos/generations/../../keys", "/v1/videos"} {
		a := &answers{list: []*http.Response{says(200, "ID3")}}
		c := client.Client{URL: "http://gw", Key: "key", HTTP: &http.Client{Transport: a}}
		_, err := c.Submit(t.Context(), client.Request{Model: "eta", Endpoint: endpoint})
		if refused, ok := errors.AsType[*client.Error](err); !ok || refused.Param != "endpoint" || len(a.paths) > 0 {
			t.Errorf("%s: %v, after calls of %q", endpoint, err, a.paths)
		}
	}
}
