package task_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/task/tasktest"
)

// TestPromises checks what a task promises, whatever happens, in any order, and repeated at will.
// A task ends once, with one post or void. A promised cancel holds. No vendor gets a second job
// without proof that there is no first one, or an operator's order. No wait lasts forever.
func TestPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := tasktest.New(t)
		w.MayBeUnreadable = true
		w.UseSources()
		w.Play(rapid.IntRange(1, 60).Draw(t, "length"))
	})
}

// TestOneJob checks that a vendor that loses most answers still gets only one job, under any name
// and at any channel, whenever its sendings arrive, and whatever other runs try. An operator may
// take the risk of a second one.
func TestOneJob(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := tasktest.New(t)
		w.UseSources()
		w.PlayLossy(rapid.IntRange(1, 40).Draw(t, "length"))
	})
}

// TestRestored checks that a restored database, or one that was restored repeatedly, makes no job
// twice without an operator.
func TestRestored(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := tasktest.New(t)
		w.UseSources()
		w.PlayRestored(rapid.IntRange(1, 40).Draw(t, "length"))
	})
}

// TestLapsed checks that a database that loses its last seconds, unnoticed, makes no job twice
// either. The answers of calls and the run's memory bring back what it lost (D5).
func TestLapsed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := tasktest.New(t)
		w.UseSources()
		w.PlayLapsed(rapid.IntRange(1, 40).Draw(t, "length"))
	})
}

// TestAdvanceIsTotal checks that Advance has an answer for every state, even for states that no
// history leads to: a row that was mended by hand, or one half of a restored database. From each
// state the task ends, although every step fails.
func TestAdvanceIsTotal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := tasktest.New(t)
		w.Now = tasktest.Noon.Add(24 * time.Hour)
		moment := func(what string) time.Time {
			if !rapid.Bool().Draw(t, what) {
				return time.Time{}
			}
			return tasktest.Noon.Add(time.Duration(rapid.IntRange(0, 48*60).Draw(t, what+" at")) * time.Minute)
		}
		s := &w.State
		s.Status = rapid.SampledFrom(
			[]mediagate.Status{mediagate.StatusPending, mediagate.StatusProcessing},
		).Draw(t, "status")
		s.DeadlineAt = tasktest.Noon.Add(time.Duration(rapid.IntRange(0, 48).Draw(t, "deadline")) * time.Hour)
		s.CancelRequestedAt, s.FailRequestedAt = moment("cancel"), moment("fail")
		if why := rapid.SampledFrom([]mediagate.WaitWhy{
			"", mediagate.WhyPause, mediagate.WhyParked, mediagate.WhySlot, mediagate.WhyModal, mediagate.WhyUnknown,
			mediagate.WhyVendor,
		}).Draw(t, "wait"); why != "" {
			s.Wait = mediagate.Wait{Why: why, Since: tasktest.Noon, TryAt: moment("try")}
			if why != mediagate.WhyPause {
				s.Wait.EndsAt = tasktest.Noon.Add(time.Duration(rapid.IntRange(0, 48*60).Draw(t, "ends")) * time.Minute)
			}
			switch why {
			case mediagate.WhyParked:
				s.Wait.Reason = rapid.SampledFrom(
					[]mediagate.ParkReason{mediagate.ParkProviderAway, mediagate.ParkStorage},
				).Draw(t, "reason")
			case mediagate.WhySlot:
				s.Wait.Reason = rapid.SampledFrom([]mediagate.ParkReason{"", mediagate.ParkFunds}).Draw(t, "reason")
			case mediagate.WhyUnknown:
				s.Wait.Reason = rapid.SampledFrom([]mediagate.ParkReason{"", mediagate.ParkSubmissionUnknown}).Draw(t, "reason")
			case mediagate.WhyPause, mediagate.WhyModal, mediagate.WhyVendor, mediagate.WhySource:
			}
		}
		s.Granted = rapid.Bool().Draw(t, "granted")
		s.Inputs.Over = rapid.Bool().Draw(t, "checked")
		if rapid.Bool().Draw(t, "attempt") {
			a := task.Attempt{
				Sending: task.Sending{
					N: 1, Channel: "a", Provider: "kling", ExternalID: "task_1", Sends: 1, CanStop: rapid.Bool().Draw(t, "stop"),
					Route: mediagate.Route{
						Provider: "kling", Sync: rapid.Bool().Draw(t, "sync"), Find: rapid.Bool().Draw(t, "find"),
					},
					SendBefore: tasktest.Noon.Add(10 * time.Second), CallEnds: moment("call ends"),
				},
				CreatedAt: tasktest.Noon,
				State: rapid.SampledFrom([]mediagate.AttemptState{
					mediagate.AttemptIntent, mediagate.AttemptAccepted, mediagate.AttemptRejected, mediagate.AttemptUnknown,
					mediagate.AttemptEnded, mediagate.AttemptAbandoned,
				}).Draw(t, "state"),
				AbsentAt: moment("absent"), AbsentAgainAt: moment("again"), LookedAt: moment("looked"),
				SenderLost: rapid.Bool().Draw(t, "lost"), AcceptedAt: moment("accepted"), SlotUntil: moment("slot"),
			}
			if a.SlotUntil.IsZero() {
				a.SlotUntil = tasktest.Noon
			}
			if rapid.Bool().Draw(t, "outcome") {
				a.Outcome = w.Outcome()
			}
			if rapid.Bool().Draw(t, "failure") {
				a.Failure = &mediagate.Failure{Code: mediagate.CodeProviderAway, Retryable: rapid.Bool().Draw(t, "retryable")}
			}
			if rapid.Bool().Draw(t, "job") {
				a.Ref.JobID = "job1"
			}
			if rapid.Bool().Draw(t, "results") {
				a.Results = []mediagate.Result{{Key: "k"}}
			}
			s.Attempts = []task.Attempt{a}
			if rapid.Bool().Draw(t, "modal") {
				s.Modal = mediagate.Modal{N: 1, State: rapid.SampledFrom([]mediagate.ModalState{
					mediagate.ModalWaiting, mediagate.ModalSubmitted, mediagate.ModalExpired,
				}).Draw(t, "modal state")}
			}
		}
		// Some states always have a wait of their own kind; other states never have such a wait.
		a := s.Last()
		unknown := a != nil && a.State == mediagate.AttemptUnknown && a.AbsentAgainAt.IsZero()
		switch {
		case s.Modal.State == mediagate.ModalWaiting:
			s.Wait = mediagate.Wait{Why: mediagate.WhyModal, Since: tasktest.Noon, EndsAt: tasktest.Noon.Add(time.Hour)}
		case unknown:
			s.Wait = mediagate.Wait{
				Why: mediagate.WhyUnknown, Since: tasktest.Noon, TryAt: moment("lookup"), EndsAt: tasktest.Noon.Add(3 * time.Hour),
			}
		case s.Wait.Why == mediagate.WhyUnknown, s.Wait.Why == mediagate.WhyModal:
			s.Wait = mediagate.Wait{}
		}
		w.CheckStep(func(format string, args ...any) {
			t.Helper()
			t.Fatalf(format, args...)
		})
		w.Exhaust()
	})
}
