package workflows_test

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
)

// slippery is the store behind a line that loses answers, and the place where
// what is written is judged.
type slippery struct {
	*activitytest.Store
	p *play
}

// slip1 is slip for a call with a result.
func slip1[T any](p *play, ctx context.Context, method string, call func() (T, error)) (out T, err error) {
	var zero T
	err = slip(p, ctx, method, func() error {
		var e error
		out, e = call()
		return e
	})
	if err != nil {
		return zero, err
	}
	return out, nil
}

func (s *slippery) OpenAttempt(ctx context.Context, a mediagate.Attempt, slots mediagate.Slots) (row mediagate.Attempt, opened bool, err error) {
	err = slip(s.p, ctx, "OpenAttempt", func() error {
		before, _ := s.Peek(a.TaskID)
		var e error
		if row, opened, e = s.Store.OpenAttempt(ctx, a, slots); e == nil && opened {
			s.p.opened(before, a.N)
		}
		return e
	})
	return row, opened && err == nil, err
}

func (s *slippery) Queue(ctx context.Context, id string, n int, channels []string) error {
	return slip(s.p, ctx, "Queue", func() error { return s.Store.Queue(ctx, id, n, channels) })
}

func (s *slippery) GrantSlots(ctx context.Context, g mediagate.Granting) (mediagate.Granted, error) {
	return slip1(s.p, ctx, "GrantSlots", func() (mediagate.Granted, error) { return s.Store.GrantSlots(ctx, g) })
}

func (s *slippery) ReopenIntent(ctx context.Context, id string, n int, lost, sendBefore time.Time) (bool, error) {
	return slip1(s.p, ctx, "ReopenIntent", func() (bool, error) {
		before, _ := s.Peek(id)
		rows := s.Attempts(id)
		reopened, err := s.Store.ReopenIntent(ctx, id, n, lost, sendBefore)
		if reopened {
			s.p.opened(before, n)
			s.p.reopened(rows[n-1])
		}
		return reopened, err
	})
}

func (s *slippery) Settle(ctx context.Context, end mediagate.Settlement) (st mediagate.Story, won bool, err error) {
	err = slip(s.p, ctx, "Settle", func() error {
		before, _ := s.Peek(end.TaskID)
		rows := s.Attempts(end.TaskID)
		var e error
		if st, won, e = s.Store.Settle(ctx, end); e == nil && won {
			s.p.settled(before, rows, end)
		}
		return e
	})
	return st, won && err == nil, err
}

func (s *slippery) Story(ctx context.Context, id string) (mediagate.Story, error) {
	return slip1(s.p, ctx, "Story", func() (mediagate.Story, error) { return s.Store.Story(ctx, id) })
}

func (s *slippery) TaskByID(ctx context.Context, id string) (mediagate.Task, error) {
	return slip1(s.p, ctx, "TaskByID", func() (mediagate.Task, error) { return s.Store.TaskByID(ctx, id) })
}

func (s *slippery) Attempt(ctx context.Context, id string, n int) (mediagate.Attempt, error) {
	return slip1(s.p, ctx, "Attempt", func() (mediagate.Attempt, error) { return s.Store.Attempt(ctx, id, n) })
}

func (s *slippery) RequestCancel(ctx context.Context, account, id string) (mediagate.Task, error) {
	return slip1(s.p, ctx, "RequestCancel", func() (mediagate.Task, error) { return s.Store.RequestCancel(ctx, account, id) })
}

func (s *slippery) Park(ctx context.Context, id string, reason mediagate.ParkReason) error {
	return slip(s.p, ctx, "Park", func() error { return s.Store.Park(ctx, id, reason) })
}

func (s *slippery) Unpark(ctx context.Context, id string) error {
	return slip(s.p, ctx, "Unpark", func() error { return s.Store.Unpark(ctx, id) })
}

func (s *slippery) RecordAction(ctx context.Context, a mediagate.Action) (mediagate.Action, error) {
	return slip1(s.p, ctx, "RecordAction", func() (mediagate.Action, error) { return s.Store.RecordAction(ctx, a) })
}

func (s *slippery) TakeAction(ctx context.Context, id, taker string) (bool, error) {
	return slip1(s.p, ctx, "TakeAction", func() (bool, error) { return s.Store.TakeAction(ctx, id, taker) })
}

func (s *slippery) AcceptAttempt(ctx context.Context, id string, n int, sub mediagate.Submission, first time.Time) (bool, error) {
	return slip1(s.p, ctx, "AcceptAttempt", func() (bool, error) { return s.Store.AcceptAttempt(ctx, id, n, sub, first) })
}

func (s *slippery) RejectAttempt(ctx context.Context, id string, n int, sendBefore time.Time, f mediagate.Failure, detail string) error {
	return slip(s.p, ctx, "RejectAttempt", func() error { return s.Store.RejectAttempt(ctx, id, n, sendBefore, f, detail) })
}

func (s *slippery) MarkUnknown(ctx context.Context, id string, n int, sendBefore time.Time, detail string) error {
	return slip(s.p, ctx, "MarkUnknown", func() error { return s.Store.MarkUnknown(ctx, id, n, sendBefore, detail) })
}

func (s *slippery) DoubtRefusal(ctx context.Context, id string, n int, sendBefore time.Time, f mediagate.Failure, detail string) error {
	return slip(s.p, ctx, "DoubtRefusal", func() error { return s.Store.DoubtRefusal(ctx, id, n, sendBefore, f, detail) })
}

func (s *slippery) NoteAbsent(ctx context.Context, id string, n int, sendBefore, asked time.Time, gap time.Duration) (first time.Time, proven bool, err error) {
	err = slip(s.p, ctx, "NoteAbsent", func() (e error) {
		first, proven, e = s.Store.NoteAbsent(ctx, id, n, sendBefore, asked, gap)
		return e
	})
	return first, proven && err == nil, err
}

func (s *slippery) GiveUpAttempt(ctx context.Context, id string, n int, detail string) error {
	return slip(s.p, ctx, "GiveUpAttempt", func() error { return s.Store.GiveUpAttempt(ctx, id, n, detail) })
}

func (s *slippery) RecordOutcome(ctx context.Context, id string, n int, o mediagate.Outcome) (bool, error) {
	return slip1(s.p, ctx, "RecordOutcome", func() (bool, error) { return s.Store.RecordOutcome(ctx, id, n, o) })
}

func (s *slippery) StoreMirrored(ctx context.Context, id string, n int, results []mediagate.Result) error {
	return slip(s.p, ctx, "StoreMirrored", func() error { return s.Store.StoreMirrored(ctx, id, n, results) })
}

func (s *slippery) ClaimDue(ctx context.Context, channel string, epoch int64, claim string, lease time.Duration, limit int) ([]mediagate.Await, error) {
	return slip1(s.p, ctx, "ClaimDue", func() ([]mediagate.Await, error) { return s.Store.ClaimDue(ctx, channel, epoch, claim, lease, limit) })
}

func (s *slippery) StorePolls(ctx context.Context, channel, claim string, results []mediagate.PollResult) ([]mediagate.Await, error) {
	return slip1(s.p, ctx, "StorePolls", func() ([]mediagate.Await, error) { return s.Store.StorePolls(ctx, channel, claim, results) })
}

func (s *slippery) DropAwait(ctx context.Context, id string, n int) error {
	return slip(s.p, ctx, "DropAwait", func() error { return s.Store.DropAwait(ctx, id, n) })
}

func (s *slippery) BeginModal(ctx context.Context, id string, n int) error {
	return slip(s.p, ctx, "BeginModal", func() error { return s.Store.BeginModal(ctx, id, n) })
}

func (s *slippery) ExpireModal(ctx context.Context, id string) error {
	return slip(s.p, ctx, "ExpireModal", func() error { return s.Store.ExpireModal(ctx, id) })
}

func (s *slippery) NoteTrouble(ctx context.Context, id string, n int, trouble mediagate.ParkReason) error {
	return slip(s.p, ctx, "NoteTrouble", func() error { return s.Store.NoteTrouble(ctx, id, n, trouble) })
}

func (s *slippery) RestoreAwait(ctx context.Context, id string, n int, next time.Time) error {
	return slip(s.p, ctx, "RestoreAwait", func() error { return s.Store.RestoreAwait(ctx, id, n, next) })
}

func (s *slippery) RecordDelivery(ctx context.Context, d mediagate.Delivery, state mediagate.WebhookState, reason string) error {
	return slip(s.p, ctx, "RecordDelivery", func() error { return s.Store.RecordDelivery(ctx, d, state, reason) })
}

func (s *slippery) Refusals(ctx context.Context, id string) (map[string]int, error) {
	return slip1(s.p, ctx, "Refusals", func() (map[string]int, error) { return s.Store.Refusals(ctx, id) })
}

// moves is slip for a change of a breaker.
func (s *slippery) moves(ctx context.Context, method string, change func() (mediagate.ChannelState, bool, error)) (state mediagate.ChannelState, moved bool, err error) {
	err = slip(s.p, ctx, method, func() (e error) {
		state, moved, e = change()
		return e
	})
	return state, moved && err == nil, err
}

func (s *slippery) TripBreaker(ctx context.Context, t mediagate.Trip) (mediagate.ChannelState, bool, error) {
	return s.moves(ctx, "TripBreaker", func() (mediagate.ChannelState, bool, error) { return s.Store.TripBreaker(ctx, t) })
}

func (s *slippery) ClaimProbe(ctx context.Context, channel, probe string, lease time.Duration) (mediagate.ChannelState, bool, error) {
	return s.moves(ctx, "ClaimProbe", func() (mediagate.ChannelState, bool, error) {
		return s.Store.ClaimProbe(ctx, channel, probe, lease)
	})
}

func (s *slippery) CloseBreaker(ctx context.Context, channel, probe string) (mediagate.ChannelState, bool, error) {
	return s.moves(ctx, "CloseBreaker", func() (mediagate.ChannelState, bool, error) { return s.Store.CloseBreaker(ctx, channel, probe) })
}

func (s *slippery) ReopenBreaker(ctx context.Context, channel, probe string, reason mediagate.ParkReason, openFor time.Duration) (mediagate.ChannelState, bool, error) {
	return s.moves(ctx, "ReopenBreaker", func() (mediagate.ChannelState, bool, error) {
		return s.Store.ReopenBreaker(ctx, channel, probe, reason, openFor)
	})
}

func (s *slippery) ReleaseProbe(ctx context.Context, channel, probe string) (mediagate.ChannelState, bool, error) {
	return s.moves(ctx, "ReleaseProbe", func() (mediagate.ChannelState, bool, error) { return s.Store.ReleaseProbe(ctx, channel, probe) })
}
