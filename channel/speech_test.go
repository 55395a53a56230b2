package channel_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/providers"
)

// voice is a vendor that speaks as its function does, and counts its calls.
type voice struct {
	providers.Provider
	mu    sync.Mutex
	calls int
	speak func(ctx context.Context) (io.ReadCloser, error)
}

func (v *voice) Speak(ctx context.Context, _ mediagate.Job) (io.ReadCloser, error) {
	v.mu.Lock()
	v.calls++
	v.mu.Unlock()
	return v.speak(ctx)
}

func sings(text string) func(context.Context) (io.ReadCloser, error) {
	return func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
}

func silent(kind mediagate.Kind) func(context.Context) (io.ReadCloser, error) {
	return func(context.Context) (io.ReadCloser, error) { return nil, failing(kind) }
}

// broken returns sound that ends with an error after its text.
func broken(text string) func(context.Context) (io.ReadCloser, error) {
	return func(context.Context) (io.ReadCloser, error) {
		r, w := io.Pipe()
		go func() {
			_, _ = io.WriteString(w, text)
			_ = w.CloseWithError(failing(mediagate.KindAmbiguous))
		}()
		return r, nil
	}
}

const openaiRoute = "openai"

// speakers returns channels named a, b and so on, in this order.
func speakers(store *activitytest.Store, concurrency int, voices ...*voice) *channel.Speakers {
	var channels []channel.Channel
	for i, v := range voices {
		channels = append(channels, channel.Channel{
			Channel: mediagate.Channel{
				Name: string(rune('a' + i)), Provider: openaiRoute, Priority: i, Weight: 1, Concurrency: concurrency,
			},
			Vendor: v,
		})
	}
	return &channel.Speakers{Channels: channel.NewConfigured(channels), Breakers: process(store, quiet()), Now: time.Now}
}

func speakBy(ctx context.Context, s *channel.Speakers) (io.ReadCloser, error) {
	return s.Speak(
		ctx, "eta", []mediagate.Route{{Provider: openaiRoute, Upstream: "tts", Operation: "speech"}}, []byte(`{}`),
	)
}

// TestSpeakFollowsRefusals checks that an error that proves that the vendor did nothing leads to
// the next channel, and that no other error does.
func TestSpeakFollowsRefusals(t *testing.T) {
	t.Parallel()
	sound := sings("sound")
	for name, test := range map[string]struct {
		first, second func(context.Context) (io.ReadCloser, error)
		calls         []int
		kind          mediagate.Kind // fine: sound
	}{
		"the first":      {sound, sound, []int{1, 0}, fine},
		"throttled":      {silent(mediagate.KindThrottled), sound, []int{1, 1}, fine},
		"full":           {silent(mediagate.KindCapacity), sound, []int{1, 1}, fine},
		"out of funds":   {silent(mediagate.KindFunds), sound, []int{1, 1}, fine},
		"no credentials": {silent(mediagate.KindCredentials), sound, []int{1, 1}, fine},
		"not allowed":    {silent(mediagate.KindForbidden), sound, []int{1, 1}, fine},
		"not found":      {silent(mediagate.KindNotFound), sound, []int{1, 1}, fine},
		"no such model":  {silent(mediagate.KindNoModel), sound, []int{1, 1}, fine},
		"no such model, broke": {
			silent(mediagate.KindNoModel), silent(mediagate.KindFunds), []int{1, 1}, mediagate.KindFunds,
		},
		"no such model twice": {
			silent(mediagate.KindNoModel), silent(mediagate.KindNoModel), []int{1, 1}, mediagate.KindNoModel,
		},
		"unreached":            {silent(mediagate.KindUnreached), sound, []int{1, 1}, fine},
		"lost":                 {silent(mediagate.KindAmbiguous), sound, []int{1, 0}, mediagate.KindAmbiguous},
		"broken before a byte": {broken(""), sound, []int{1, 0}, mediagate.KindAmbiguous},
		"no byte":              {sings(""), sound, []int{1, 0}, mediagate.KindVendor},
		"refused content":      {silent(mediagate.KindModerated), sound, []int{1, 0}, mediagate.KindModerated},
		"refused as invalid":   {silent(mediagate.KindInvalid), sound, []int{1, 0}, mediagate.KindInvalid},
		"throttled, then broke": {
			silent(mediagate.KindThrottled), silent(mediagate.KindFunds), []int{1, 1}, mediagate.KindThrottled,
		},
		"broke, then throttled": {
			silent(mediagate.KindFunds), silent(mediagate.KindThrottled), []int{1, 1}, mediagate.KindThrottled,
		},
		"broke, then unreached": {
			silent(mediagate.KindFunds), silent(mediagate.KindUnreached), []int{1, 1}, mediagate.KindUnreached,
		},
		"broke twice": {
			silent(mediagate.KindFunds), silent(mediagate.KindFunds), []int{1, 1}, mediagate.KindFunds,
		},
		"a bug of the adapter's": {
			func(context.Context) (io.ReadCloser, error) { panic("a bug") }, sound, []int{1, 0}, mediagate.KindInternal,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := &voice{speak: test.first}, &voice{speak: test.second}
			stream, err := speakBy(t.Context(), speakers(activitytest.NewStore(t, time.Now), 0, first, second))
			if (err == nil) != (test.kind == fine) || err != nil && mediagate.KindOf(err) != test.kind {
				t.Fatalf("%v, want kind %v", err, test.kind)
			}
			if diff := cmp.Diff(test.calls, []int{first.calls, second.calls}); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if err != nil {
				return
			}
			if all, err := io.ReadAll(stream); err != nil || string(all) != "sound" {
				t.Errorf("%q, %v", all, err)
			}
			if err := stream.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSpeakOpensBreakers checks that a refusal for want of funds, or for bad credentials, takes
// the channel out for all processes.
func TestSpeakOpensBreakers(t *testing.T) {
	t.Parallel()
	for _, kind := range []mediagate.Kind{mediagate.KindFunds, mediagate.KindCredentials} {
		store, v := activitytest.NewStore(t, time.Now), &voice{speak: silent(kind)}
		s := speakers(store, 0, v)
		if _, err := speakBy(t.Context(), s); !mediagate.Is(err, kind) {
			t.Errorf("%v", err)
		}
		if _, err := speakBy(t.Context(), s); !mediagate.Is(err, mediagate.KindShutOut) {
			t.Errorf("once it is out: %v", err)
		}
		if _, err := speakBy(t.Context(), speakers(store, 0, v)); !mediagate.Is(err, mediagate.KindShutOut) {
			t.Errorf("in another process: %v", err)
		}
		if v.calls != 1 {
			t.Errorf("%d calls", v.calls)
		}
	}
	s := speakers(activitytest.NewStore(t, time.Now), 0)
	if _, err := speakBy(t.Context(), s); !mediagate.Is(err, mediagate.KindShutOut) {
		t.Errorf("without a channel: %v", err)
	}
}

// TestSpeakOfARetiredModel checks that a vendor without the model is not asked again within the hour,
// by any process.
func TestSpeakOfARetiredModel(t *testing.T) {
	t.Parallel()
	store, v := activitytest.NewStore(t, time.Now), &voice{speak: silent(mediagate.KindNoModel)}
	s := speakers(store, 0, v)
	for _, s := range []*channel.Speakers{s, s, speakers(store, 0, v)} {
		if _, err := speakBy(t.Context(), s); !mediagate.Is(err, mediagate.KindNoModel) {
			t.Errorf("%v", err)
		}
	}
	if c := store.Channel("a"); v.calls != 1 || c.Open || !c.HasRetired("tts", time.Now()) {
		t.Errorf("%d calls, and the channel is %+v", v.calls, c)
	}
}

// TestSpeakCountsBreaks checks that sound that breaks off counts as a failure.
func TestSpeakCountsBreaks(t *testing.T) {
	t.Parallel()
	v := &voice{speak: broken("half")}
	s := speakers(activitytest.NewStore(t, time.Now), 0, v)
	for range 5 {
		stream, err := speakBy(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if all, err := io.ReadAll(stream); err == nil || string(all) != "half" {
			t.Errorf("%q, %v", all, err)
		}
		_ = stream.Close()
	}
	if _, err := speakBy(t.Context(), s); !mediagate.Is(err, mediagate.KindShutOut) {
		t.Errorf("after five breaks: %v", err)
	}
}

// TestSpeakCountsSilence checks that a vendor has failed if it sends nothing for as long as the
// client waits, and has not if the client left before.
func TestSpeakCountsSilence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cause error // why the call ends
		calls int   // of ten
	}{
		"the client leaves":    {context.Canceled, 10},
		"the vendor is silent": {context.DeadlineExceeded, 5},
	} {
		mute := &voice{speak: func(ctx context.Context) (io.ReadCloser, error) {
			<-ctx.Done()
			return nil, failing(mediagate.KindAmbiguous)
		}}
		s := speakers(activitytest.NewStore(t, time.Now), 0, mute)
		for range 10 {
			ctx, end := context.WithCancelCause(t.Context())
			end(c.cause)
			if _, err := speakBy(ctx, s); err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		if mute.calls != c.calls {
			t.Errorf("%s: %d calls before the channel is taken out, want %d", name, mute.calls, c.calls)
		}
	}
}

// TestSpeakWithinConcurrency checks that a channel has no more speeches at the same time than its
// concurrency allows, and that the next channel takes the rest.
func TestSpeakWithinConcurrency(t *testing.T) {
	t.Parallel()
	first, second := &voice{speak: sings("sound")}, &voice{speak: sings("sound")}
	s := speakers(activitytest.NewStore(t, time.Now), 1, first, second)
	var streams []io.ReadCloser
	for range 2 {
		stream, err := speakBy(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, stream)
	}
	_, err := speakBy(t.Context(), s)
	e, _ := errors.AsType[*mediagate.Error](err)
	if e == nil || e.Kind != mediagate.KindThrottled || e.RetryAfter != time.Second {
		t.Errorf("beyond both: %v", err)
	}
	_ = streams[0].Close()
	_ = streams[0].Close() // closing twice counts once
	if _, err := speakBy(t.Context(), s); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
	if first.calls != 2 || second.calls != 1 {
		t.Errorf("%d and %d calls", first.calls, second.calls)
	}
	first.speak = silent(mediagate.KindThrottled)
	_ = streams[1].Close()
	_, err = speakBy(t.Context(), s)
	if err != nil {
		t.Errorf("a place of a call that failed is free: %v", err)
	}
}
