package activitytest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/internal/limit"
	"github.com/mediagate/mediagate/task"
)

// Secret is part of everything that must not show up outside: prompts, links, keys.
const Secret = "hush-hush"

// TaskID is the id of the tasks that NewVideo and NewImage make.
const TaskID = "task_01TEST"

// Names of the channels and their providers. The vendor of AsyncChannel can be asked by our own ids.
const (
	AsyncChannel  = "async-a"
	AsyncProvider = "async"
	SyncChannel   = "sync-a"
	SyncProvider  = "sync"
)

// World is everything that activities touch.
type World struct {
	Store        *Store
	Async        *Vendor // behind AsyncChannel
	Sync         *Vendor // behind SyncChannel
	Channels     *Channels
	Descriptions *Descriptions
	Fetcher      *Fetcher
	Bucket       *Bucket
	Deliverer    *Deliverer
	Engine       *Engine
	Activities   *activities.Activities

	now func() time.Time
}

// New returns a world on the clock, until t ends, with one asynchronous channel and one
// synchronous one.
func New(t T, now func() time.Time) *World {
	w := &World{
		Store: NewStore(t, now), Async: &Vendor{}, Sync: &Vendor{}, Channels: &Channels{}, Descriptions: &Descriptions{},
		Fetcher: &Fetcher{},
		Bucket:  newBucket(now), Deliverer: &Deliverer{now: now}, Engine: &Engine{}, now: now,
	}
	w.Channels.Set(w.AsyncBound(), w.SyncBound())
	var ids atomic.Int64
	log, newID := slog.New(slog.DiscardHandler), func(prefix string) string {
		return fmt.Sprintf(
			"%s%d", prefix, ids.Add(1),
		)
	}
	w.Activities = &activities.Activities{
		Store: w.Store, Channels: w.Channels, Breakers: &channel.Breakers{
			Store: w.Store, Now: now, Logger: log, NewID: newID,
		},
		Descriptions: w.Descriptions, Fetcher: w.Fetcher, Bucket: w.Bucket, Sweeper: w.Bucket, Deliverer: w.Deliverer,
		Engine: w.Engine,
		Limits: &limit.Process{}, Settings: activities.DefaultSettings(), Now: now, Logger: log, NewID: newID,
	}
	return w
}

// AsyncBound returns the asynchronous channel.
func (w *World) AsyncBound() channel.Channel {
	return channel.Channel{
		Channel: mediagate.Channel{
			Name: AsyncChannel, Provider: AsyncProvider, PollMin: 2 * time.Second, PollMax: 15 * time.Second,
			Credentials: mediagate.Secrets(map[string]string{"api_key": Secret}),
		},
		Fingerprint: "account-a", Vendor: w.Async.Finding(),
	}
}

// SyncBound returns the synchronous channel.
func (w *World) SyncBound() channel.Channel {
	return channel.Channel{
		Channel:     mediagate.Channel{Name: SyncChannel, Provider: SyncProvider},
		Fingerprint: "account-s", Vendor: w.Sync,
	}
}

// NewVideo returns a new task of an asynchronous vendor, with a callback: 5 seconds at 0.10.
func (w *World) NewVideo() mediagate.Task {
	t := w.newTask(mediagate.TypeVideo)
	t.Model, t.Hold = "alpha-v3", 500_000
	t.Charges = []mediagate.Charge{{Item: "alpha-v3 std", Unit: mediagate.UnitSecond, Quantity: 5, UnitPrice: 100_000}}
	t.Plan = mediagate.Plan{
		Routes:   []mediagate.Route{{Provider: AsyncProvider, Upstream: "upstream-v3", Operation: "text2video"}},
		Expected: 2 * time.Minute, Timeout: 2 * time.Hour, OnUnknown: mediagate.OnUnknownPark, Media: "video",
		MaxBytes: 1 << 20,
	}
	return t
}

// NewImage returns a new task of a synchronous vendor, with a callback: one image at 0.02.
func (w *World) NewImage() mediagate.Task {
	t := w.newTask(mediagate.TypeImage)
	t.Model, t.Hold = "theta-image-turbo", 20_000
	t.Charges = []mediagate.Charge{
		{Item: "theta-image-turbo 1K", Unit: mediagate.UnitImage, Quantity: 1, UnitPrice: 20_000},
	}
	t.Plan = mediagate.Plan{
		Routes:   []mediagate.Route{{Provider: SyncProvider, Upstream: "upstream-image", Operation: "image", Sync: true}},
		Expected: 10 * time.Second, Timeout: 10 * time.Minute, OnUnknown: mediagate.OnUnknownFail, Media: "image",
		MaxBytes: 1 << 20,
	}
	return t
}

func (w *World) newTask(kind mediagate.Type) mediagate.Task {
	now := w.now().UTC().Truncate(time.Microsecond)
	return mediagate.Task{
		ID: TaskID, AccountID: "acc_1", KeyID: "key_1", Type: kind, Status: mediagate.StatusPending,
		Params: json.RawMessage(`{"prompt":"a prompt, ` + Secret + `"}`), CreatedAt: now, DeadlineAt: now.Add(2 * time.Hour),
		Webhook: mediagate.Webhook{URL: "https://hooks.example.com/" + Secret, State: mediagate.WebhookPending},
	}
}

// StorePoll stores what the asynchronous channel found out about an attempt, as its poller does.
func (w *World) StorePoll(ctx context.Context, p mediagate.PollResult) error {
	const claim = "claim_poll"
	var event task.Event = task.Progressed{N: p.N, Claim: claim, Percent: p.Progress, NextAt: p.NextPollAt}
	switch {
	case p.Outcome != nil:
		event = task.VendorEnded{N: p.N, Outcome: *p.Outcome}
	case p.Trouble != "":
		event = task.Troubled{N: p.N, Claim: claim, Reason: p.Trouble}
	case p.Waiting:
		event = task.VendorWaits{N: p.N, Claim: claim, NextAt: p.NextPollAt}
	}
	_, err := w.Store.Change(ctx, p.TaskID, task.Claimed{N: p.N, Claim: claim}, event)
	return err
}

// Renewed returns the asynchronous channel with a new key of the same account. Only the vendor
// knows that it is the same.
func (w *World) Renewed() channel.Channel {
	c := w.AsyncBound()
	c.Fingerprint = "account-a, new key"
	return c
}

// Stranger returns the asynchronous channel with the key of another account, whose vendor knows
// none of our jobs.
func (w *World) Stranger() (channel.Channel, *Vendor) {
	other := &Vendor{}
	c := w.AsyncBound()
	c.Fingerprint, c.Vendor = "account-b", other.Finding()
	return c, other
}

// Success returns the outcome of a job that made one file.
func Success() mediagate.Outcome {
	return mediagate.Outcome{
		Succeeded: true, Seconds: 5,
		Media: []mediagate.Media{{URL: "https://media.example.com/result?token=" + Secret, MimeType: "video/mp4"}},
	}
}

// Failed returns the outcome of a job that failed at the vendor.
func Failed(code mediagate.FailureCode) mediagate.Outcome {
	return mediagate.Outcome{Failure: &mediagate.Failure{Code: code, Message: "the vendor gave up"}, VendorText: "1300"}
}
