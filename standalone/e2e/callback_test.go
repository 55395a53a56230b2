package e2e_test

import (
	"testing"
	"time"

	"github.com/mediagate/mediagate/sandbox"
)

// rarelyPollingChannels returns channels that poll a job only in its first seconds, while the budget has room,
// and then after more than the test's patience.
func rarelyPollingChannels(providers ...string) (channels []map[string]any) {
	for _, c := range sandbox.Channels("") {
		for _, provider := range providers {
			if c.Provider == provider {
				channels = append(channels, map[string]any{
					"name": provider + "-a", "provider": provider, "credentials": c.Credentials,
					"requests_per_second": 50, "poll_interval": map[string]string{"min": "30m", "max": "30m"},
				})
			}
		}
	}
	return channels
}

// TestCallbacksOfVendors checks that a vendor's callback causes a poll at once, MiniMax's after
// its challenge, and that a flood of callbacks causes at most one poll a second.
func TestCallbacksOfVendors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{
		shape: production, workersOff: true, channels: rarelyPollingChannels("kling", "vidu", "minimax"),
	})
	w.settings["public_url"] = w.apiURLs[0]
	w.writeSettings(w.settings)
	w.workers[0].start(t)
	late, flooded := w.submit(job{model: alpha, directive: "callback=late, duration=5s"}), w.submit(job{model: alpha, directive: "callback=flood, duration=5s"})
	tasks := []*task{late, flooded}
	for _, model := range []string{alpha, beta, delta} {
		tasks = append(tasks, w.submit(job{model: model, directive: "duration=5s"}))
	}
	for _, task := range tasks {
		w.await(task, time.Minute, "completes", func(o object) bool { return o.Status == "completed" })
	}
	jobs, err := w.jobs(flooded)
	if err != nil || len(jobs) != 1 {
		t.Fatalf("jobs %+v, %v", jobs, err)
	}
	if n := jobs[0].Calls.Poll; n > 20 { // hundreds of callbacks came
		t.Errorf("the vendor that sent the flood was polled %d times", n)
	}
	w.verify(recoverTime)
}
