package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mediagate/mediagate/internal/failpoint"
)

// TestD21Chain submits five tasks at once, before the first has run (D21). Each later task uses
// files of earlier ones: a picture, another picture of it, a video of that, the edited video,
// and a video with the second picture and the edited video. In most worlds the process dies at a
// failpoint of the second link.
func TestD21Chain(t *testing.T) {
	t.Parallel()
	points := []string{"", failpoint.HandedOver, failpoint.SettleCommitted}
	if suite.verify {
		points = append(slices.DeleteFunc(failpoint.Names(), func(point string) bool { return !passes(zeta, point) }), "")
	}
	for _, point := range points {
		t.Run("killed at "+point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{shape: standalone, failpoint: point})
			l := &sourceChain{user: w.user(t), point: point}
			l.play()
		})
	}
}

// sourceChain is a chain of five links. The process dies at a failpoint of the second.
type sourceChain struct {
	*user
	point string // empty: the process does not die
}

func (l *sourceChain) play() {
	l.t.Helper()
	l.disarm()
	file := func(t *task) string { return "/v1/tasks/" + t.id + "/files/1" }
	still := l.submitQuietly(step{path: "/images/generations", price: "0.092", body: map[string]any{
		"model": "zeta-3.1-flash-image-preview", "prompt": "a paper boat",
	}})
	if l.point == failpoint.SubmitCommitted {
		l.arm()
	}
	second := l.link(step{path: "/images/generations", price: "0.092", body: map[string]any{
		"model": "zeta-3.1-flash-image-preview", "prompt": "the same boat at dusk", "image_urls": []any{file(still)},
	}})
	film := l.submitStep(step{path: "/videos/generations", price: "0.5", body: map[string]any{
		"model": "beta-q3", "prompt": "it sails away", "image_urls": []any{l.apiURLs[0] + file(second)},
	}})
	edited := l.submitStep(step{path: "/videos/generations", price: "1.5", body: map[string]any{
		"model": "gamma2.7-videoedit", "prompt": "turn the sea into sand", "video_urls": []any{file(film)},
	}})
	both := l.submitStep(step{path: "/videos/generations", price: "0.5", body: map[string]any{
		"model": "delta-H3", "prompt": "they meet", "image_urls": []any{file(second)}, "video_urls": []any{file(edited)},
	}})
	if l.point != "" && l.point != failpoint.SubmitCommitted {
		l.awaitCompleted(still)
		l.arm()
		l.workers[0].awaitKilled(l.t, crashLimit)
		l.workers[0].start(l.t)
	}
	jobs := map[string]int{"gemini": 2, "vidu": 1, "dashscope": 1, "minimax": 1}
	if l.point == failpoint.IntentStored || l.point == failpoint.VendorAccepted {
		// The vendor cannot look the job up, so the second link fails, and with it the later ones.
		second.wantStatus, second.wantCode = "failed", "provider_submission_unknown"
		for _, t := range []*task{film, edited, both} {
			t.wantStatus, t.wantCode = "failed", "source_failed"
		}
		jobs = map[string]int{"gemini": 2, "vidu": 0, "dashscope": 0, "minimax": 0}
		if l.point == failpoint.IntentStored {
			jobs["gemini"] = 1
		} else {
			second.objectsIfFailed = 1 // the vendor had handed over its file
		}
	}
	l.checkSettled()
	for provider, want := range jobs {
		if got := l.vendorHas(provider); got != want {
			l.t.Errorf("%s has %d jobs, want %d", provider, got, want)
		}
	}
	l.checkBucket(l.ends)
	l.checkWorkflows()
}

// disarm lets the process survive its failpoint, until arm is called.
func (l *sourceChain) disarm() {
	l.t.Helper()
	if l.point == "" {
		return
	}
	if err := os.WriteFile(l.mark(), nil, 0o600); err != nil {
		l.t.Fatal(err)
	}
}

func (l *sourceChain) arm() {
	l.t.Helper()
	if err := os.Remove(l.mark()); err != nil {
		l.t.Fatal(err)
	}
}

func (l *sourceChain) mark() string { return filepath.Join(l.dir, "data", "failpoint-"+l.point) }

// submitQuietly submits a step without a callback. A callback would pass the failpoints of
// callbacks after the end of the task.
func (l *sourceChain) submitQuietly(s step) *task {
	l.t.Helper()
	t := &task{model: s.path, price: s.price}
	var err error
	if t.id, err = taskID(l.call(http.MethodPost, s.path, s.body)); err != nil {
		l.t.Fatalf("%s: %v", s.path, err)
	}
	l.tasks = append(l.tasks, t)
	return t
}

// link submits the second link. If the process dies during the submit, link repeats it.
func (l *sourceChain) link(s step) *task {
	l.t.Helper()
	if l.point != failpoint.SubmitCommitted {
		return l.submitStep(s)
	}
	t := &task{model: s.path, price: s.price}
	r := request{
		method: http.MethodPost, url: l.apiURLs[0] + "/v1" + s.path, key: l.key, body: s.body,
		header: map[string]string{"Idempotency-Key": randomText(20)},
	}
	if a, err := r.do(l.t.Context()); err == nil {
		l.t.Fatalf("it is answered: %d %s", a.status, a.body)
	}
	l.workers[0].awaitKilled(l.t, crashLimit)
	l.workers[0].start(l.t)
	a, err := r.do(l.t.Context())
	if err == nil {
		t.id, err = taskID(a)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	l.tasks = append(l.tasks, t)
	return t
}
