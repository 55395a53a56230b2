package activities

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/webhook"
)

// WaitsForPlace reports that the error is of a delivery that waits for its turn.
func WaitsForPlace(err error) bool { return FromTemporal(err).Code == codeNoPlace }

// placeFor takes a place for the attempt. Who finds none gives its activity back at
// once, to come again when there may be one: that is no attempt, and its turn goes
// by when it was due, which Temporal keeps, in whichever process it comes up.
func (a *Activities) placeFor(ctx context.Context, in RoundArgs, target mediagate.WebhookTarget) (*webhook.Place, error) {
	place, wait := a.delivering.Take(webhook.Ask{
		Account: target.AccountID, URL: target.URL,
		Delivery: fmt.Sprintf("%s/%d/%d", in.TaskID, in.Round, in.Attempt),
		Due:      activity.GetInfo(ctx).ScheduledTime, Now: a.Now(),
	})
	if place != nil {
		return place, nil
	}
	why := ""
	if wait.Silent {
		why = ", which lets them time out and is tried few at a time"
	}
	return nil, &mediagate.Error{
		Kind: mediagate.KindCapacity, Code: codeNoPlace, RetryAfter: wait.For,
		Message: fmt.Sprintf("attempt %d waits for its turn: %d callbacks of the account are under way to its receiver%s, %d wait before it",
			in.Attempt, wait.Under, why, wait.Ahead),
	}
}

// DeliveriesAtOnce is how many callbacks a process sends at once.
const DeliveriesAtOnce = webhook.AtOnce

// silenceEvery is how often it is told at most that receivers fell silent.
const silenceEvery = 10 * time.Second

// silences tells the log of receivers that fell silent, which clients can make
// happen at will.
type silences struct {
	mu    sync.Mutex
	told  time.Time
	times int // since then
}

func (s *silences) count(now time.Time) (times int, tell bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times++
	if now.Sub(s.told) < silenceEvery {
		return 0, false
	}
	times, s.times, s.told = s.times, 0, now
	return times, true
}

// noteSilence says of whom callbacks go few at a time from now on.
func (a *Activities) noteSilence(ctx context.Context, account, receiver string) {
	if times, tell := a.silences.count(a.Now()); tell {
		a.Logger.WarnContext(ctx, "a receiver of callbacks does not answer: the account's are sent to it few at a time",
			"account", account, "receiver", receiver, "times", times)
	}
}
