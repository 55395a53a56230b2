package view_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oklog/ulid/v2"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/catalog/price"
	"github.com/mediagate/mediagate/internal/outbound"
	"github.com/mediagate/mediagate/internal/webhook"
	"github.com/mediagate/mediagate/task/view"
)

var update = flag.Bool("update", false, "write the blocks of docs/results.md anew")

const (
	resultsPage = "../../docs/results.md"
	creditsPer  = 1000
	readAfter   = 20 * time.Second // the end
	calledAfter = time.Second      // the end
)

// docsSecret is the webhook secret that the page tells.
var docsSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("a secret of thirty-two bytes, ok"))

// madeBlock is a block of the page, after the comment with its name.
var madeBlock = regexp.MustCompile("(?s)<!-- made by TestResultsInTheDocs: ([^>]+) -->\n```(?:json|http)\n(.*?)```\n")

// TestResultsInTheDocs compares the blocks of docs/results.md with what readers and
// receivers of these tasks get.
func TestResultsInTheDocs(t *testing.T) {
	t.Parallel()
	d := newDocs(t)
	video := d.task("video", "/v1/videos/generations", `{"model": "alpha-v3", "prompt": "a paper boat sails down a rainy street", "duration": 5,
		"metadata": {"reference": "order-17"}}`, 93400*time.Millisecond)
	d.complete(video, nil,
		mediagate.Result{MimeType: "video/mp4", Size: 4718592, Width: 1280, Height: 720, Duration: 5.042})
	image := d.task(
		"image", "/v1/images/generations",
		`{"model": "zeta-3.1-flash-image-preview", "prompt": "a lighthouse at dawn", "size": "4:3", "n": 2}`,
		21700*time.Millisecond,
	)
	d.complete(image, nil,
		mediagate.Result{MimeType: "image/png", Size: 1622016, Width: 1200, Height: 896},
		mediagate.Result{MimeType: "image/png", Size: 1589248, Width: 1200, Height: 896, Index: 1})
	song := d.task(
		"music", "/v1/music/generations", `{"model": "music-a", "gpt_description": "a calm song about a lake at dawn"}`,
		141*time.Second,
	)
	clips := []mediagate.Clip{
		{
			ID: "5b0c1d52-6f0e-4a5e-9d43-0f6f3c1b7a10", Title: "Quiet lake",
			Lyrics: "A boat on a quiet lake,\nthe morning is awake", Tags: "folk, calm",
			CreatedAt: "2026-03-01T12:02:05Z",
		},
		{
			ID: "c7a94e0b-21d7-4b83-8a6c-5e2d9f40b6d3", Title: "Quiet lake",
			Lyrics: "A boat on a quiet lake,\nthe morning is awake", Tags: "folk, calm",
			CreatedAt: "2026-03-01T12:02:05Z",
		},
	}
	songs := []mediagate.Result{
		{MimeType: "audio/mpeg", Size: 2883584, Duration: 180.12},
		{MimeType: "audio/mpeg", Size: 2654208, Duration: 165.8, Index: 1},
		{MimeType: "image/jpeg", Size: 98304, Width: 1024, Height: 1024, Role: mediagate.RoleCover},
		{MimeType: "image/jpeg", Size: 90112, Width: 1024, Height: 1024, Role: mediagate.RoleCover, Index: 1},
	}
	d.complete(song, &mediagate.Made{Clips: clips}, songs...)
	flow := d.task(
		"music-b", "/v1/music/generations",
		`{"model": "music-b", "sound_prompt": "calm folk", "lyrics": "A boat on a quiet lake"}`, 98*time.Second,
	)
	d.complete(flow, &mediagate.Made{Clips: []mediagate.Clip{{
		ID: "8d1f6a3c-94b2-4f0d-b7ce-2a5e1c93d048", Title: "Quiet lake",
		Lyrics:   "A boat on a quiet lake,\nthe morning is awake",
		LyricsID: "f2b7c0de-5a19-4c8e-9d36-7e4b1a08c5f2", Timing: [][2]float64{{0.4, 6.2}, {6.2, 11.8}},
		CreatedAt: "2026-03-01T12:01:31Z",
	}}},
		mediagate.Result{MimeType: "audio/mpeg", Size: 1916928, Duration: 119.7},
		mediagate.Result{MimeType: "audio/wav", Size: 21102592, Role: mediagate.RoleWAV},
		mediagate.Result{MimeType: "image/jpeg", Size: 81920, Width: 1024, Height: 1024, Role: mediagate.RoleCover})
	art := d.task("art", "/v1/artgen/generations", `{"prompt": "a red boat on a quiet lake"}`, 54200*time.Millisecond)
	four := []mediagate.Result{{MimeType: "image/png", Size: 6815744, Width: 2048, Height: 2048, Role: mediagate.RoleGrid}}
	for i := range 4 {
		four = append(
			four, mediagate.Result{MimeType: "image/png", Size: 1638400 + int64(i)*8192, Width: 1024, Height: 1024, Index: i},
		)
	}
	d.complete(art, &mediagate.Made{Buttons: buttons("1f0e9c3a-7b52-4d18-a6c4-93d05e8b2f71")}, four...)
	failed := d.task(
		"failed", "/v1/videos/generations", `{"model": "delta-02", "prompt": "a storm"}`, 8300*time.Millisecond,
	)
	failed.Status, failed.Progress = mediagate.StatusFailed, 12
	failed.Failure = &mediagate.Failure{Code: mediagate.CodeContentPolicy, Message: "the content was refused"}
	cancelled := d.task(
		"cancelled", "/v1/videos/generations", `{"model": "alpha-video-o1", "prompt": "a slow river"}`, 31*time.Second,
	)
	cancelled.Status, cancelled.Progress = mediagate.StatusCancelled, 20
	cancelled.Webhook = mediagate.Webhook{State: mediagate.WebhookDropped, Reason: "task cancelled"}

	want := map[string]string{
		"music-b clip": pretty(t, view.Of(flow, creditsPer, d.links(flow, readAfter)).Result.Music[0]),
		"art words":    pretty(t, view.ArtOf(art, creditsPer, d.links(art, readAfter))),
		"cancelled":    d.answer(cancelled),
	}
	for name, task := range map[string]*mediagate.Task{
		"video": video, "image": image, "music": song, "art": art, "failed": failed,
	} {
		want[name], want[name+" callback"] = d.answer(task), d.callback(task)
	}
	d.compare(want)
}

// buttons are those of four pictures.
func buttons(id string) (all []mediagate.Button) {
	for n := 1; n <= 4; n++ {
		all = append(
			all, mediagate.Button{CustomID: fmt.Sprintf("MJ::JOB::upsample::%d::%s", n, id), Label: fmt.Sprintf("U%d", n)},
		)
	}
	all = append(all, mediagate.Button{CustomID: "MJ::JOB::reroll::0::" + id + "::SOLO", Label: "🔄"})
	for n := 1; n <= 4; n++ {
		all = append(
			all, mediagate.Button{CustomID: fmt.Sprintf("MJ::JOB::variation::%d::%s", n, id), Label: fmt.Sprintf("V%d", n)},
		)
	}
	return all
}

// docs makes the tasks of the page and what is shown of them.
type docs struct {
	t      *testing.T
	models *catalog.Catalog
}

func newDocs(t *testing.T) docs {
	t.Helper()
	models, err := catalog.Load("")
	if err != nil {
		t.Fatal(err)
	}
	return docs{t, models}
}

// task is one that a submit of the body made, at the model's own price. It ended after so long.
func (d docs) task(name, endpoint, body string, lasted time.Duration) *mediagate.Task {
	d.t.Helper()
	var fields map[string]any
	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&fields); err != nil {
		d.t.Fatal(err)
	}
	operation, err := d.models.Find(endpoint, fields)
	if err != nil {
		d.t.Fatal(err)
	}
	r, err := operation.Accept(fields)
	if err != nil {
		d.t.Fatal(err)
	}
	created, entropy := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), sha256.Sum256([]byte(name))
	return &mediagate.Task{
		ID:    "task_" + ulid.MustNew(ulid.Timestamp(created), bytes.NewReader(entropy[:])).String(),
		Model: operation.Model.ID, Type: operation.Model.Type, Params: r.Params, Reference: r.Reference,
		Plan: r.Plan, Charges: r.Charges, Hold: price.Total(r.Charges), CreatedAt: created, EndedAt: created.Add(lasted),
		Webhook: mediagate.Webhook{State: mediagate.WebhookDelivered},
	}
}

// complete ends the task with files, and charges what it holds.
func (d docs) complete(task *mediagate.Task, made *mediagate.Made, results ...mediagate.Result) {
	d.t.Helper()
	task.Status, task.Progress, task.Made, task.Results = mediagate.StatusCompleted, 100, made, results
	task.Cost = price.Settle(task.Charges, price.DeliveredBy(mediagate.Outcome{Succeeded: true, Made: made}, results))
	if task.Cost != task.Hold {
		d.t.Errorf("%s costs %s of %s", task.ID, task.Cost, task.Hold)
	}
	for i := range results {
		results[i].Key = fmt.Sprintf("%s1/%d", mediagate.ResultFolder(task.ID), i)
	}
}

// links are those that are signed so long after the task's end.
func (d docs) links(task *mediagate.Task, after time.Duration) []mediagate.Link {
	d.t.Helper()
	now := task.EndedAt.Add(after)
	links, err := view.Links{
		TTL: 7 * 24 * time.Hour, Keep: mediagate.Retention{Results: 30 * 24 * time.Hour},
		Now: func() time.Time { return now },
		Sign: func(_ context.Context, r mediagate.Result, ttl time.Duration) (mediagate.Link, error) {
			end := now.Add(ttl)
			signature := sha256.Sum256(fmt.Appendf(nil, "%s %d", r.Key, end.Unix()))
			return mediagate.Link{
				URL: fmt.Sprintf("https://media.example.com/%s?X-Amz-Signature=%x", r.Key, signature[:4]), ExpiresAt: end,
			}, nil
		},
	}.Of(d.t.Context(), task)
	if err != nil {
		d.t.Fatal(err)
	}
	return links
}

// answer is what GET /v1/tasks/{id} answers, laid out.
func (d docs) answer(task *mediagate.Task) string {
	d.t.Helper()
	return pretty(d.t, struct {
		Code int       `json:"code"`
		Data view.Task `json:"data"`
	}{http.StatusOK, view.Of(task, creditsPer, d.links(task, readAfter))})
}

// callback is the request that the receiver of the task gets.
func (d docs) callback(task *mediagate.Task) string {
	d.t.Helper()
	bare := *task
	bare.Webhook = mediagate.Webhook{}
	body, err := view.Of(&bare, creditsPer, d.links(task, calledAfter)).JSON()
	if err != nil {
		d.t.Fatal(err)
	}
	got := make(chan string, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var text strings.Builder
		fmt.Fprintf(&text, "%s %s HTTP/1.1\nHost: %s\n", r.Method, r.RequestURI, r.Host)
		for _, name := range slices.Sorted(maps.Keys(r.Header)) {
			fmt.Fprintf(&text, "%s: %s\n", name, strings.Join(r.Header[name], ", "))
		}
		sent, _ := io.ReadAll(r.Body)
		fmt.Fprintf(&text, "\n%s\n", sent)
		got <- text.String()
	}))
	defer receiver.Close()
	sender := webhook.New(webhook.Config{
		Version: "0.1.0", Now: func() time.Time { return task.EndedAt.Add(calledAfter) },
		Rules: outbound.Rules{Resolver: anywhere{}, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, receiver.Listener.Addr().String())
		}},
	})
	result, err := sender.Deliver(d.t.Context(), webhook.Attempt{
		URL: "http://shop.example.com/hooks", ID: task.ID, Body: body, Secrets: []string{docsSecret},
	})
	if err != nil || result.Outcome != mediagate.DeliveryDone {
		d.t.Fatalf("the callback: %+v, %v", result, err)
	}
	return <-got
}

// anywhere gives every name a public address.
type anywhere struct{}

func (anywhere) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
}

// compare holds the page's blocks against what they should be, or writes them.
func (d docs) compare(want map[string]string) {
	d.t.Helper()
	page, err := os.ReadFile(resultsPage)
	if err != nil {
		d.t.Fatal(err)
	}
	if *update {
		page = madeBlock.ReplaceAllFunc(page, func(block []byte) []byte {
			parts := madeBlock.FindSubmatch(block)
			before := block[:len(block)-len(parts[2])-len("```\n")]
			return fmt.Appendf(nil, "%s%s```\n", before, want[string(parts[1])])
		})
		if err := os.WriteFile(resultsPage, page, 0o600); err != nil {
			d.t.Fatal(err)
		}
	}
	got := map[string]string{}
	for _, block := range madeBlock.FindAllSubmatch(page, -1) {
		got[string(block[1])] = string(block[2])
	}
	if diff := cmp.Diff(got, want); diff != "" {
		d.t.Errorf("docs/results.md (-page +now; make generate rewrites it):\n%s", diff)
	}
	if !bytes.Contains(page, []byte(docsSecret)) {
		d.t.Errorf("docs/results.md does not tell the secret %s", docsSecret)
	}
}

var (
	innermost = regexp.MustCompile(`[\[{]\n[^\[\]{}]*\n *[\]}]`)
	nextLine  = regexp.MustCompile(`\n *`)
)

// pretty lays JSON out: a short list or object without others in it takes one line.
func pretty(t *testing.T, v any) string {
	t.Helper()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		t.Fatal(err)
	}
	return innermost.ReplaceAllStringFunc(text.String(), func(inner string) string {
		line := strings.NewReplacer("[ ", "[", "{ ", "{", " ]", "]", " }", "}").Replace(nextLine.ReplaceAllString(inner, " "))
		if len(line) > 160 {
			return inner
		}
		return line
	})
}
