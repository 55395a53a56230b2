package api_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/internal/limit"
)

const secretWord = "xylograph"

// censor refuses texts with the secret word and records its calls.
type censor struct {
	mu    sync.Mutex
	asked [][]string
	fail  error
	open  bool
}

func (c *censor) Check(_ context.Context, texts []string) (mediagate.Verdict, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, texts)
	switch {
	case c.fail != nil && c.open:
		return mediagate.Verdict{Unchecked: c.fail}, nil
	case c.fail != nil:
		return mediagate.Verdict{}, c.fail
	}
	for _, text := range texts {
		if strings.Contains(text, secretWord) {
			return mediagate.Verdict{Refused: true, Rule: "words.txt:7", Digest: sha256.Sum256([]byte(text))}, nil
		}
	}
	return mediagate.Verdict{}, nil
}

func (c *censor) last() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.asked) == 0 {
		return nil
	}
	return c.asked[len(c.asked)-1]
}

func (c *censor) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.asked)
}

func censored(t *testing.T) (*gateway, *censor) {
	t.Helper()
	c := &censor{}
	return newGateway(t, func(cfg *api.Config) { cfg.Moderator = c }), c
}

// TestModeration checks that each kind of submit is moderated by all texts that it sends to a
// vendor, and by no others. WORD stands for an allowed or a refused text.
func TestModeration(t *testing.T) {
	t.Parallel()
	g, c := censored(t)
	song, flow, picture := g.song(songBody), g.song(flowBody), g.submit(art, artBody)
	g.accept(picture)
	g.askMore(picture)
	element := `{"name":"Tom","description":"WORD","element_input_urls":["https://example.com/a.png","https://example.com/b.png"]}`
	for name, call := range map[string]struct {
		path, body string
		texts      []string // of the body with a fine word
	}{
		"prompt":          {videos, `{"model":"alpha-v3","prompt":"WORD","aspect_ratio":"16:9","image_urls":["https://example.com/WORD.png"],"metadata":{"reference":"my WORD"},"unknown":"WORD"}`, []string{"fine"}},
		"negative prompt": {videos, `{"model":"alpha-v3","prompt":"a cat","negative_prompt":"WORD"}`, []string{"a cat", "fine"}},
		"shots": {videos, `{"model":"alpha-v3","prompt":"a cat","multi_shot":true,"shot_type":"customize","duration":5,` +
			`"multi_prompt":[{"index":1,"prompt":"one","duration":2},{"index":2,"prompt":"WORD","duration":3}]}`, []string{"a cat", "one", "fine"}},
		"element":   {videos, `{"model":"alpha-v3","prompt":"@Tom runs","element_list":[` + element + `]}`, []string{"@Tom runs", "Tom", "fine"}},
		"messages":  {videos, `{"model":"gamma2.6","prompt":"a cat","messages":[{"role":"user","content":[{"type":"text","text":"WORD"}]}]}`, []string{"a cat\nfine"}},
		"image":     {images, `{"model":"theta-image-turbo","prompt":"WORD"}`, []string{"fine"}},
		"song":      {music, `{"model":"music-a","custom":true,"prompt":"la la","title":"WORD","tags":"folk","negative_tags":"metal"}`, []string{"la la", "fine", "folk", "metal"}},
		"described": {music, `{"model":"music-a","custom":false,"gpt_description":"WORD","title":"left out"}`, []string{"fine"}},
		"lyrics":    {music, `{"model":"music-b","sound_prompt":"folk","lyrics":"WORD"}`, []string{"folk", "fine"}},
		"sample":    {music + "/sample", `{"model":"music-a","task_id":"` + song + `","gpt_description":"WORD","start_s":1,"end_s":2}`, []string{"fine"}},
		"section":   {music + "/replaceMusic", `{"model":"music-a","task_id":"` + song + `","start_s":1,"end_s":2,"infill_lyrics":"WORD"}`, []string{"fine"}},
		"section b": {music + "/replaceMusicB", `{"model":"music-b","clip_id":"` + clipOne + flow + `","start_s":1,"end_s":2,"instruction":"WORD"}`, []string{"fine"}},
		"art":       {art, `{"prompt":"WORD","speed":"fast"}`, []string{"fine"}},
		"modal":     {art + "/modal", `{"task_id":"` + picture + `","prompt":"WORD"}`, []string{"fine"}},
		"speech":    {speechPath, `{"model":"eta-4o-mini-tts","input":"hello","voice":"coral","instructions":"WORD"}`, []string{"hello", "fine"}},
	} {
		t.Run(name, func(t *testing.T) { // one after the other: each looks at what the judge heard
			tasks, starts := g.balance(), g.starts()
			a := g.send(request{
				method: http.MethodPost, path: call.path, key: g.key, header: http.Header{"Idempotency-Key": {"refused " + name}},
				body: strings.ReplaceAll(call.body, "WORD", secretWord),
			})
			const message = "the content was refused"
			if strings.HasPrefix(call.path, music) {
				a.wantErrorB(t, http.StatusUnprocessableEntity, "invalid_request_error", "content_policy_violation", "", message)
			} else {
				want := map[string]any{"code": 422., "type": "invalid_request_error", "message": message, "param": nil, "reason": "content_policy_violation", "request_id": a.header.Get("X-Request-Id")}
				if diff := cmp.Diff(want, a.at("error")); a.status != 422 || diff != "" {
					t.Errorf("%d (-want +got):\n%s", a.status, diff)
				}
			}
			if now := g.balance(); now != tasks || g.starts() != starts {
				t.Errorf("something came of it: %s, before %s", now, tasks)
			}
			if a := g.send(request{
				method: http.MethodPost, path: call.path, key: g.key, header: http.Header{"Idempotency-Key": {"refused " + name}},
				body: strings.ReplaceAll(call.body, "WORD", "fine"),
			}); a.status != http.StatusOK { // the key of what was refused is free
				t.Errorf("%d %s", a.status, a.body)
			}
			if diff := cmp.Diff(call.texts, c.last()); diff != "" {
				t.Errorf("judged (-want +got):\n%s", diff)
			}
		})
	}
	log := g.log.String()
	digest := sha256.Sum256([]byte(secretWord))
	line := ""
	for l := range strings.Lines(log) {
		if strings.Contains(l, `"content refused"`) && strings.Contains(l, hex.EncodeToString(digest[:])) {
			line = l
		}
	}
	for _, part := range []string{g.account.ID, g.keyRow.Prefix, `"rule":"words.txt:7"`} {
		if !strings.Contains(line, part) {
			t.Errorf("the line %q lacks %s", line, part)
		}
	}
	if strings.Contains(log, secretWord) {
		t.Error("the log holds what was refused")
	}
}

// balance returns the account's available amount and its number of tasks.
func (g *gateway) balance() string {
	g.t.Helper()
	account, err := g.store.Account(g.t.Context(), g.account.ID)
	g.must(err)
	list, _, err := g.store.Tasks(g.t.Context(), mediagate.TaskFilter{AccountID: g.account.ID, Limit: 100})
	g.must(err)
	return fmt.Sprint(account.Available, account.Held, account.Spent, len(list))
}

// TestModerationComesBeforeMoney checks that moderation follows validation and precedes the hold.
// A replayed submit is not moderated again, and a quote sends nothing.
func TestModerationComesBeforeMoney(t *testing.T) {
	t.Parallel()
	g, c := censored(t)
	g.post(videos, `{"model":"alpha-v3","prompt":"`+secretWord+`","duration":99}`).
		wantStatus(t, http.StatusBadRequest, "validation comes first")
	g.post("/v1/quote", `{"endpoint":"`+videos+`","model":"alpha-v3","prompt":"`+secretWord+`"}`).
		wantStatus(t, http.StatusOK, "a quote")
	if n := c.count(); n != 0 {
		t.Errorf("judged %d times", n)
	}
	_, poor := g.newKey(mediagate.Key{})
	g.send(request{method: http.MethodPost, path: videos, key: poor, body: strings.Replace(videoBody, "a cat", secretWord, 1)}).
		wantStatus(t, 422, "money comes later")
	again := request{method: http.MethodPost, path: videos, key: g.key, body: videoBody, header: http.Header{"Idempotency-Key": {"k"}}}
	first := g.send(again).taskID(t)
	judged := c.count()
	c.fail = errors.New("down")
	if a := g.send(again); a.taskID(t) != first || c.count() != judged {
		t.Errorf("judged again: %s", a.body)
	}
}

func TestModerationThatFails(t *testing.T) {
	t.Parallel()
	g, c := censored(t)
	c.fail = &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "moderation is not available", Err: errors.New("refused by 10.0.0.1")}
	a := g.post(videos, videoBody)
	if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" || strings.Contains(a.body, "10.0.0.1") {
		t.Errorf("closed: %d %s", a.status, a.body)
	}
	c.open = true
	g.submit(videos, videoBody)
	if !slices.ContainsFunc(strings.Split(g.log.String(), "\n"), func(l string) bool {
		return strings.Contains(l, "content not judged") && strings.Contains(l, g.account.ID) && strings.Contains(l, `"level":"WARN"`)
	}) {
		t.Errorf("open: nobody is told: %s", g.log.String())
	}
}

// TestModerationOfUnpaidRequests checks that the endpoint gets no request that the account cannot
// pay, if calls cost money.
func TestModerationOfUnpaidRequests(t *testing.T) {
	t.Parallel()
	c := &censor{}
	g := newGateway(t, func(cfg *api.Config) { cfg.Moderator, cfg.ModeratorCalls = c, true })
	_, poor := g.newKey(mediagate.Key{Quota: 1})
	g.send(request{method: "POST", path: videos, key: poor, body: videoBody}).wantError(t, 402, "payment_required", "")
	if n := c.count(); n != 0 {
		t.Errorf("%d were judged", n)
	}
	_, enough := g.newKey(mediagate.Key{Quota: 420_000})
	if a := g.send(request{method: "POST", path: videos, key: enough, body: videoBody}); a.status != 200 || c.count() != 1 {
		t.Errorf("%d %s, %d were judged", a.status, a.body, c.count())
	}
}

// TestModerationIsShared checks that an account has a share of the concurrent calls and leaves
// some to others.
func TestModerationIsShared(t *testing.T) {
	t.Parallel()
	h := slowModerator{make(chan struct{}, 100), make(chan struct{})}
	l := limit.New("moderation", 4)
	g := newGateway(t, func(cfg *api.Config) {
		cfg.Moderator, cfg.ModeratorCalls, cfg.Limits = h, true, &limit.Process{Moderation: l}
	})
	key := g.other()
	var calls sync.WaitGroup
	post := func(key string) {
		calls.Go(func() { g.send(request{method: http.MethodPost, path: videos, key: key, body: videoBody}) })
	}
	for range 10 {
		post(g.key)
	}
	eventually(t, "eight of the crowd wait", func() bool { return l.Figures().Held == 2 && l.Figures().Waiting == 8 })
	post(key)
	eventually(t, "the other's text is judged", func() bool { return len(h.asked) == 3 })
	close(h.answer)
	calls.Wait()
}
