package api_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
)

// slowStore is an empty store that answers slowly.
type slowStore struct {
	api.Store
	key            mediagate.Key
	account        mediagate.Account
	auth, work     time.Duration // of the look-up of the key, of all else
	count          time.Duration // of counting a submit
	later          time.Duration // of reading the task again
	reads          int
	fault          error // what work ends in
	faultWhenStuck bool  // the fault instead of the passed deadline
}

const forever = time.Hour

func (s *slowStore) take(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		if d == s.work {
			return s.fault
		}
		return nil
	case <-ctx.Done():
		if s.faultWhenStuck {
			return s.fault
		}
		return &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "the database is away", Err: ctx.Err()}
	}
}

func (s *slowStore) KeyByHash(ctx context.Context, _ [32]byte) (mediagate.Key, mediagate.Account, error) {
	return s.key, s.account, s.take(ctx, s.auth)
}

func (s *slowStore) TakeRates(ctx context.Context, limits []mediagate.RateLimit) ([]mediagate.RateLeft, bool, error) {
	return make([]mediagate.RateLeft, len(limits)), true, s.take(ctx, s.count)
}

func (s *slowStore) Task(ctx context.Context, account, id string) (mediagate.Task, error) {
	s.reads++
	d := s.work
	if s.reads > 1 {
		d = s.later
	}
	return mediagate.Task{ID: id, AccountID: account, Type: mediagate.TypeVideo, Status: mediagate.StatusPending, Version: 1}, s.take(ctx, d)
}

func (s *slowStore) Submit(ctx context.Context, n mediagate.NewTask) (string, bool, error) {
	return n.Task.ID, false, s.take(ctx, s.work)
}

func (s *slowStore) Account(ctx context.Context, _ string) (mediagate.Account, error) {
	return mediagate.Account{}, s.take(ctx, s.work)
}

func (s *slowStore) Versions(ctx context.Context, ids []string) (map[string]int64, error) {
	return map[string]int64{ids[0]: 1}, s.take(ctx, 0)
}

func (s *slowStore) TouchKeys(context.Context, map[string]time.Time) error { return nil }

// TestStoreTimeout runs on the bubble's clock. It checks that a request has 10 s for all its
// database calls, without the time of its body or its wait.
func TestStoreTimeout(t *testing.T) {
	t.Parallel()
	const poll = "/v1/tasks/" + noTask
	fault := errors.New("sql: transaction has already been committed or rolled back")
	tests := map[string]struct {
		store   slowStore
		path    string // videos: a submit
		body    time.Duration
		closes  time.Duration // when the client closes its sending side
		status  int
		takes   time.Duration
		message string // of a balance endpoint
	}{
		"in time":                    {store: slowStore{auth: 4 * time.Second, work: 5 * time.Second}, path: poll, status: 200, takes: 9 * time.Second},
		"the key's look-up hangs":    {store: slowStore{auth: forever}, path: poll, status: 503, takes: 10 * time.Second},
		"the read hangs":             {store: slowStore{work: forever}, path: poll, status: 503, takes: 10 * time.Second},
		"a submit's count hangs":     {store: slowStore{account: mediagate.Account{AccountLimits: mediagate.AccountLimits{Rate: new(5)}}, count: forever}, path: videos, status: 503, takes: 10 * time.Second},
		"slow upload":                {store: slowStore{auth: 2 * time.Second, work: 5 * time.Second}, path: videos, body: time.Minute, status: 200, takes: 69 * time.Second},
		"slow upload, then it hangs": {store: slowStore{auth: 4 * time.Second, work: forever}, path: videos, body: time.Minute, status: 503, takes: 70 * time.Second},
		"wait":                       {store: slowStore{auth: 4 * time.Second, work: 5 * time.Second, later: 5 * time.Second}, path: poll + "?wait=60", status: 200, takes: 78 * time.Second},
		"wait, then it hangs":        {store: slowStore{later: forever}, path: poll + "?wait=60", status: 503, takes: 70 * time.Second},
		"a fault of another name":    {store: slowStore{work: forever, fault: fault, faultWhenStuck: true}, path: poll, status: 503, takes: 10 * time.Second},
		"a fault in time":            {store: slowStore{work: time.Second, fault: fault}, path: poll, status: 500, takes: time.Second},
		"balance":                    {store: slowStore{work: forever}, path: "/v1/user/balance", status: 200, takes: 10 * time.Second, message: "database error"},
		"half-closed":                {store: slowStore{work: 5 * time.Second}, path: poll, closes: 3 * time.Second, status: 200, takes: 5 * time.Second},
		"half-closed, it hangs":      {store: slowStore{work: forever}, path: poll, closes: 3 * time.Second, status: 503, takes: 10 * time.Second},
		"half-closed, wait":          {store: slowStore{later: time.Second}, path: poll + "?wait=60", closes: 3 * time.Second, status: 200, takes: 61 * time.Second},
		"half-closed, wait and hang": {store: slowStore{later: forever}, path: poll + "?wait=5", closes: 8 * time.Second, status: 503, takes: 15 * time.Second},
	}
	models := api.BuiltIn(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				secret, _ := api.NewKey()
				test.store.key = mediagate.Key{ID: "key", AccountID: "acc", Group: "default", Unlimited: true, Scopes: mediagate.Scopes()}
				log := &syncBuffer{}
				server, err := api.New(api.Config{
					Store: &test.store, Catalog: models, Routes: &vendors{}, Uploads: &bucket{}, Files: &bucket{}, FileURL: fileURL, Starter: &starter{}, Runs: &starter{}, Signer: noSigner{}, Remover: &bucket{}, Speaker: &speaker{},
					Logger: slog.New(slog.NewJSONHandler(log, nil)),
				})
				must(t, err)
				defer server.Close()
				checkAnswers(t, server)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if test.closes > 0 {
					time.AfterFunc(test.closes, cancel) // as net/http does then
				}
				method, body := http.MethodGet, io.Reader(nil)
				if test.path == videos {
					method, body = http.MethodPost, &slowBody{Reader: iotest.OneByteReader(strings.NewReader(videoBody)), each: test.body / time.Duration(len(videoBody))}
				}
				req := httptest.NewRequestWithContext(ctx, method, test.path, body)
				req.Header.Set("Authorization", "Bearer "+secret)
				w, start := httptest.NewRecorder(), time.Now()
				server.ServeHTTP(w, req)
				if took := time.Since(start).Round(time.Second); took != test.takes {
					t.Errorf("took %s, want %s", took, test.takes)
				}
				if w.Code != test.status {
					t.Errorf("%d %s, want %d", w.Code, w.Body, test.status)
				}
				if test.status == 503 {
					if w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), `"type":"server_error"`) {
						t.Errorf("%v %s", w.Header(), w.Body)
					}
					if !strings.Contains(log.String(), `"level":"ERROR"`) {
						t.Errorf("not in the log: %s", log)
					}
				}
				if !strings.Contains(w.Body.String(), test.message) {
					t.Errorf("%s lacks %s", w.Body, test.message)
				}
			})
		})
	}
}

// connection records its write deadline.
type connection struct {
	*httptest.ResponseRecorder
	writeBy time.Time
}

func (c *connection) SetWriteDeadline(t time.Time) error {
	c.writeBy = t
	return nil
}

// TestLongAnswers checks that the connection stays open for as long as a call of an operator that
// reads the whole history may take.
func TestLongAnswers(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	for _, path := range []string{"/ledger/check", "/tasks?total=true", "/usage", "/accounts/" + g.account.ID + "/statement"} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/admin/v1"+path, http.NoBody)
		req.Header.Set("Authorization", "Bearer "+adminKey)
		w := &connection{ResponseRecorder: httptest.NewRecorder()}
		g.server.ServeHTTP(w, req)
		if left := time.Until(w.writeBy); w.Code != http.StatusOK || left < 29*time.Minute {
			t.Errorf("%s: %d, and the answer must be written within %s", path, w.Code, left)
		}
	}
}

type slowBody struct {
	io.Reader
	each time.Duration
}

func (b *slowBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	time.Sleep(time.Duration(n) * b.each)
	return n, err
}

// TestHangingDatabase calls routes of each kind while the database receives everything and never
// answers.
func TestHangingDatabase(t *testing.T) {
	t.Parallel()
	way := &wire{}
	g := newGateway(t, func(c *api.Config) {
		c.Store, c.StoreTimeout = way.through(t, c), 500*time.Millisecond
		c.Checks.Database = func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			_, err := c.Store.Account(ctx, noAccount)
			return err
		}
	})
	var first answer // after which the key is remembered
	eventually(t, "a task is stored in the short time", func() bool {
		first = g.post(videos, videoBody)
		return first.status == http.StatusOK
	})
	id := first.taskID(t)
	spare, _ := g.newKey(mediagate.Key{Unlimited: true})
	stranger, _ := api.NewKey()
	requests := map[string]request{
		"task":          {path: "/v1/tasks/" + id},
		"long poll":     {path: "/v1/tasks/" + id + "?wait=1"},
		"submit, keyed": {method: "POST", path: videos, body: videoBody, header: http.Header{"Idempotency-Key": {"k"}}},
		"another key":   {path: "/v1/tasks", key: stranger},
		"readyz":        {path: "/readyz"},
		"balance":       {path: "/v1/balance"},
		"grant":         {method: "POST", path: "/admin/v1/accounts/" + g.account.ID + "/grants", key: adminKey, body: `{"amount":"1","reference":"a"}`},
		"deletion":      {method: "DELETE", path: "/admin/v1/keys/" + spare.ID, key: adminKey},
	}
	way.hold.Lock()
	answers := map[string]answer{}
	var mu sync.Mutex
	var asking sync.WaitGroup
	start := time.Now()
	for name, r := range requests {
		if r.key == "" {
			r.key = g.key
		}
		asking.Go(func() {
			a := g.send(r)
			mu.Lock()
			defer mu.Unlock()
			answers[name] = a
		})
	}
	asking.Wait()
	if took := time.Since(start); took > patience {
		t.Errorf("answered after %s", took)
	}
	for name, a := range answers {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(name, "balance") {
				if a.status != 200 || a.at("message") != "database error" {
					t.Errorf("%d %s", a.status, a.body)
				}
				return
			}
			a.wantError(t, 503, "server_error", "")
			if name != "readyz" && a.header.Get("Retry-After") != "1" {
				t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
			}
		})
	}
	way.hold.Unlock()
	a := g.get("/v1/tasks/" + id)
	for range 20 { // the machine may be busy, and the time is short
		if a.status == 200 {
			return
		}
		a = g.get("/v1/tasks/" + id)
	}
	t.Errorf("afterwards: %d %s", a.status, a.body)
}

// lostCommit is a store that answers a submit too late.
type lostCommit struct{ testStore }

func (s *lostCommit) Submit(ctx context.Context, n mediagate.NewTask) (string, bool, error) {
	if _, _, err := s.testStore.Submit(context.WithoutCancel(ctx), n); err != nil {
		return "", false, err
	}
	return "", false, &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "submit", Err: context.DeadlineExceeded}
}

// TestLostCommitWithoutKey checks that OpenAI's clients do not repeat a submit without a key that
// may have made a task. They repeat other failures of a server.
func TestLostCommitWithoutKey(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(c *api.Config) {
		inner, _ := c.Store.(testStore)
		c.Store = &lostCommit{inner}
	})
	for path, body := range map[string]string{
		openAIVideos:             boatBody,
		"/v1/images/generations": `{"model":"theta-image-turbo","prompt":"a red boat","response_format":"url"}`,
	} {
		if a := g.post(path, body); a.status != http.StatusServiceUnavailable || a.header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s: %d %s, X-Should-Retry %q", path, a.status, a.body, a.header.Get("X-Should-Retry"))
		}
	}
	if a := g.post(openAIVideos, `{}`); a.header.Get("X-Should-Retry") != "" {
		t.Errorf("a refusal: %v", a.header)
	}
}
