package channel_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/channel"
)

const gate = "kling-a"

// inBubble runs a parallel subtest on a clock of its own.
func inBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, test)
	})
}

// enable enables or disables a channel, as an operator does.
func enable(t *testing.T, store *activitytest.Store, name string, in bool) {
	t.Helper()
	if _, err := store.EnableChannel(t.Context(), name, in); err != nil {
		t.Fatal(err)
	}
}

// process returns the breakers of one of several processes that share a store.
func process(store *activitytest.Store, log *slog.Logger) *channel.Breakers {
	n := 0
	var mu sync.Mutex
	b := &channel.Breakers{Store: store, Now: time.Now, Logger: log}
	b.NewID = func(prefix string) string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return fmt.Sprintf("%s%p-%d", prefix, b, n)
	}
	return b
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// enter lets a job in. It fails the test if the breaker does not.
func enter(t *testing.T, b *channel.Breakers) channel.Pass {
	t.Helper()
	e, ok := tryEnter(t, b)
	if !ok {
		t.Fatalf("the channel takes no job: %+v", b.State(gate))
	}
	return e
}

func tryEnter(t *testing.T, b *channel.Breakers) (channel.Pass, bool) {
	t.Helper()
	e, ok, err := b.Enter(t.Context(), gate, 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return e, ok
}

// submits makes jobs that end with these kinds, one after the other.
func submits(t *testing.T, b *channel.Breakers, kinds ...mediagate.Kind) {
	t.Helper()
	for _, kind := range kinds {
		enter(t, b).Ended(t.Context(), failing(kind))
	}
}

// fine is the kind of a success.
const fine = mediagate.Kind(255)

func failing(kind mediagate.Kind) error {
	if kind == fine {
		return nil
	}
	return mediagate.Errorf(kind, "secret words of https://vendor.example.com")
}

func times(n int, kind mediagate.Kind) []mediagate.Kind {
	kinds := make([]mediagate.Kind, n)
	for i := range kinds {
		kinds[i] = kind
	}
	return kinds
}

// slow is a store that answers late.
type slow struct{ *activitytest.Store }

func (s slow) ChannelStates(ctx context.Context) ([]mediagate.ChannelState, error) {
	time.Sleep(time.Second)
	return s.Store.ChannelStates(ctx)
}

// TestFirstReadingOfTheStates checks that no caller takes a channel for one that takes jobs while
// the first caller still waits for the states.
func TestFirstReadingOfTheStates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := activitytest.New(t, time.Now).Store
		enable(t, store, gate, false)
		b := process(store, quiet())
		b.Store = slow{store}
		var askers sync.WaitGroup
		for i := range 8 {
			askers.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond)
				if b.TakesJobs(gate) {
					t.Errorf("asker %d found that it takes jobs", i)
				}
			})
		}
		askers.Wait()
	})
}

// TestBreakerOpens checks what opens a breaker, and what does not.
func TestBreakerOpens(t *testing.T) {
	t.Parallel()
	const away, credentials, funds = mediagate.ParkProviderAway, mediagate.ParkCredentials, mediagate.ParkFunds
	join := func(lists ...[]mediagate.Kind) (all []mediagate.Kind) {
		for _, l := range lists {
			all = append(all, l...)
		}
		return all
	}
	for name, c := range map[string]struct {
		ends []mediagate.Kind
		gap  time.Duration // the pause between two submits
		want mediagate.ParkReason
	}{
		"nothing wrong":          {ends: times(20, fine)},
		"four failures":          {ends: times(4, mediagate.KindUnreached)},
		"five connections":       {ends: times(5, mediagate.KindUnreached), want: away},
		"five lost answers":      {ends: times(5, mediagate.KindAmbiguous), want: away},
		"five senseless answers": {ends: times(5, mediagate.KindVendor), want: away},
		"of all sorts":           {ends: join(times(2, mediagate.KindVendor), times(3, mediagate.KindAmbiguous)), want: away},
		"half of them":           {ends: join(times(5, fine), times(5, mediagate.KindAmbiguous)), want: away},
		"less than half":         {ends: join(times(6, fine), times(5, mediagate.KindAmbiguous))},
		"far apart":              {ends: times(9, mediagate.KindUnreached), gap: 16 * time.Second},
		"within the minute":      {ends: times(5, mediagate.KindUnreached), gap: 10 * time.Second, want: away},
		"successes of long ago": {
			ends: join(times(1, fine), times(6, mediagate.KindUnreached)), gap: 11 * time.Second, want: away,
		},
		"the client's fault":     {ends: times(50, mediagate.KindInvalid)},
		"moderated":              {ends: times(50, mediagate.KindModerated)},
		"throttled":              {ends: times(50, mediagate.KindThrottled)},
		"full":                   {ends: times(50, mediagate.KindCapacity)},
		"not found":              {ends: times(50, mediagate.KindNotFound)},
		"no such model":          {ends: times(50, mediagate.KindNoModel)},
		"our own fault":          {ends: times(50, mediagate.KindInternal)},
		"our database":           {ends: times(50, mediagate.KindUnavailable)},
		"one refused credential": {ends: join(times(50, fine), times(1, mediagate.KindCredentials)), want: credentials},
		"one without funds":      {ends: join(times(50, fine), times(1, mediagate.KindFunds)), want: funds},
	} {
		inBubble(t, name, func(t *testing.T) {
			store := activitytest.NewStore(t, time.Now)
			b := process(store, quiet())
			for _, kind := range c.ends {
				if e, ok := tryEnter(t, b); ok {
					e.Ended(t.Context(), failing(kind))
				}
				time.Sleep(c.gap)
			}
			if s := store.Channel(gate); s.Open != (c.want != "") || s.Reason != c.want {
				t.Errorf("open %t for %q, want %q", s.Open, s.Reason, c.want)
			}
			if got := b.TakesJobs(gate); got != (c.want == "") {
				t.Errorf("takes jobs: %t", got)
			}
		})
	}
}

// TestBreakerIsNotTheClients checks that a client's server cannot take a channel out, and that
// its errors are not the result of a probe: they say nothing about the vendor.
func TestBreakerIsNotTheClients(t *testing.T) {
	t.Parallel()
	held := &mediagate.Error{
		Kind: mediagate.KindUnreached, Message: "other calls have the memory", Err: mediagate.ErrHeldUp,
	}
	synctest.Test(t, func(t *testing.T) {
		store := activitytest.NewStore(t, time.Now)
		b := process(store, quiet())
		for range 50 {
			enter(t, b).Ended(t.Context(), held)
		}
		if s := store.Channel(gate); s.Open {
			t.Errorf("open for %q", s.Reason)
		}
		submits(t, b, times(5, mediagate.KindUnreached)...)
		time.Sleep(time.Minute)
		enter(t, b).Ended(t.Context(), held)
		if s := store.Channel(gate); !s.Open {
			t.Error("closed by a job that was not sent")
		}
		enter(t, b).Ended(t.Context(), nil)
		if s := store.Channel(gate); s.Open {
			t.Error("the next job is no probe")
		}
	})
}

// TestBreakerProbes checks the whole cycle of a breaker, and how long each part takes.
func TestBreakerProbes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := activitytest.NewStore(t, time.Now)
		b := process(store, quiet())
		submits(t, b, times(5, mediagate.KindAmbiguous)...)
		for _, pause := range []time.Duration{
			30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute,
		} {
			time.Sleep(pause - time.Millisecond)
			if _, ok := tryEnter(t, b); ok {
				t.Fatalf("a job was let through within %v", pause)
			}
			time.Sleep(time.Millisecond)
			probe := enter(t, b)
			if _, ok := tryEnter(t, b); ok {
				t.Fatal("two jobs were let through")
			}
			probe.Ended(t.Context(), failing(mediagate.KindUnreached))
		}
		time.Sleep(time.Hour) // no job came
		if !b.TakesJobs(gate) {
			t.Fatal("after an hour nobody may try")
		}
		probe := enter(t, b)
		probe.Ended(t.Context(), failing(mediagate.KindThrottled)) // throttled is an answer
		if s := store.Channel(gate); s.Open || s.Trips != 0 {
			t.Errorf("after an answer: %+v", s)
		}
		submits(t, b, times(4, mediagate.KindAmbiguous)...)
		if store.Channel(gate).Open {
			t.Error("failures from before the closing counted")
		}
		submits(t, b, mediagate.KindAmbiguous)
		if s := store.Channel(gate); !s.Open || s.Trips != 1 || !s.ProbeAt.Equal(time.Now().Add(30*time.Second)) {
			t.Errorf("opened again: %+v", s)
		}
	})
}

// TestProbeIsNotLost checks that a process that died with the probe, or did not use it, does not
// lock out other jobs.
func TestProbeIsNotLost(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]struct {
		how  func(channel.Pass, context.Context)
		gone time.Duration // the time until the next job is let through
	}{
		"killed":       {func(channel.Pass, context.Context) {}, time.Minute},
		"not sent":     {channel.Pass.Unused, 0},
		"our own bug":  {func(e channel.Pass, ctx context.Context) { e.Ended(ctx, errors.New("bug")) }, 0},
		"sent in time": {func(e channel.Pass, ctx context.Context) { e.Ended(ctx, nil) }, 0},
	} {
		inBubble(t, name, func(t *testing.T) {
			store := activitytest.NewStore(t, time.Now)
			a, b := process(store, quiet()), process(store, quiet())
			submits(t, a, mediagate.KindCredentials)
			time.Sleep(30 * time.Second)
			leave.how(enter(t, a), t.Context())
			if leave.gone > 0 {
				time.Sleep(leave.gone - time.Millisecond)
				if _, ok := tryEnter(t, b); ok {
					t.Error("a second job was let through while the probe may be under way")
				}
				time.Sleep(time.Millisecond)
			}
			enter(t, b)
		})
	}
}

// TestEnabling checks that an operator's change counts at once, and that calls that began before
// it do not count.
func TestEnabling(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := activitytest.NewStore(t, time.Now)
		b := process(store, quiet())
		slow := enter(t, b)
		submits(t, b, mediagate.KindFunds)
		time.Sleep(time.Second)
		enable(t, store, gate, true)
		time.Sleep(time.Second)
		slow.Ended(t.Context(), failing(mediagate.KindFunds)) // this call began before the payment
		if !b.TakesJobs(gate) {
			t.Error("what began before the operator's word closed the channel")
		}
		enable(t, store, gate, false)
		time.Sleep(time.Second)
		if _, ok := tryEnter(t, b); ok || b.TakesJobs(gate) {
			t.Error("a disabled channel takes jobs")
		}
	})
}

// TestStatesAreReadOnceASecond checks that closed breakers cost only one reading a second, and
// that the last reading counts while the database is away.
func TestStatesAreReadOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := activitytest.NewStore(t, time.Now)
		var mu sync.Mutex
		looks, away := 0, false
		store.Fault = func(method string) error {
			mu.Lock()
			defer mu.Unlock()
			if method == "ChannelStates" {
				looks++
			}
			if away {
				return mediagate.Errorf(mediagate.KindUnavailable, "away")
			}
			return nil
		}
		b := process(store, quiet())
		for range 1000 {
			enter(t, b).Ended(t.Context(), nil)
			b.TakesJobs("another")
			time.Sleep(10 * time.Millisecond)
		}
		if looks < 9 || looks > 11 {
			t.Errorf("%d looks in ten seconds", looks)
		}
		submits(t, b, mediagate.KindFunds)
		mu.Lock()
		away = true
		mu.Unlock()
		time.Sleep(20 * time.Second)
		if b.TakesJobs(gate) || !b.TakesJobs("another") {
			t.Error("without the database not what was known last")
		}
		time.Sleep(20 * time.Second)
		if _, ok, err := b.Enter(t.Context(), gate, time.Second); ok || !mediagate.Is(err, mediagate.KindUnavailable) {
			t.Errorf("a probe without the database: %t, %v", ok, err)
		}
	})
}

// TestCalls checks that counts reach the database, and that the text of an error holds no words
// of the vendor.
func TestCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := activitytest.NewStore(t, time.Now)
		var log bytes.Buffer
		b := process(store, slog.New(slog.NewTextHandler(&log, nil)))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { b.Run(ctx); close(done) }()
		if err := store.CountCalls(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		submits(t, b, fine, fine, mediagate.KindInvalid, mediagate.KindAmbiguous)
		time.Sleep(5*time.Second + time.Millisecond)
		b.NoteError(gate, "poll", failing(mediagate.KindTransient))
		submits(t, b, mediagate.KindFunds)
		stop()
		<-done
		rates, err := store.ChannelRates(t.Context(), time.Now().Add(-5*time.Minute))
		if err != nil || rates[gate] != (mediagate.ChannelCalls{Channel: gate, Submits: 5, Failures: 2}) {
			t.Errorf("rates %+v, %v", rates, err)
		}
		if s := store.Channel(gate); s.LastError != "submit: funds" || s.LastErrorAt.IsZero() {
			t.Errorf("last error %q at %v", s.LastError, s.LastErrorAt)
		}
		if text := log.String(); !strings.Contains(text, "level=ERROR msg=\"a channel is taken out\"") ||
			strings.Contains(text, "vendor.example.com") {
			t.Errorf("log:\n%s", text)
		}
	})
}
