package workflows_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/workflows"
)

const deadline = 2 * time.Hour

func TestD10Deadline(t *testing.T) {
	t.Parallel()
	t.Run("the last poll finds success", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.at(time.Hour, func() { b.Async.End(taskID, activitytest.Success()) }) // nobody polls
		b.run()
		b.ended(mediagate.StatusCompleted)
		if got := b.endedAt(); got != deadline {
			t.Errorf("ended after %v, want %v", got, deadline)
		}
		if got := len(b.Async.Polls()); got != 1 {
			t.Errorf("%d polls, want one", got)
		}
	})
	t.Run("the last poll finds failure", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.Async.End(taskID+"-other", activitytest.Success())
		b.at(time.Hour, func() { b.Async.End(taskID, activitytest.Failed(mediagate.CodeContentPolicy)) })
		b.run()
		b.failed(mediagate.CodeContentPolicy)
	})
	t.Run("still running", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.run()
		b.failed(mediagate.CodeGenerationTimeout)
		if f := b.task().Failure; !f.Retryable {
			t.Error("a timeout is not marked as retryable")
		}
		if got := b.endedAt(); got != deadline {
			t.Errorf("ended after %v, want %v", got, deadline)
		}
	})
	t.Run("out of reach, then back", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.Async.OnPoll = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
			if b.elapsed() < deadline+40*time.Second {
				return mediagate.Report{}, errAway
			}
			outcome := activitytest.Success()
			return mediagate.Report{State: mediagate.JobSucceeded, Outcome: &outcome}, nil
		}
		b.run()
		b.ended(mediagate.StatusCompleted)
	})
	t.Run("out of reach for good", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.Async.OnPoll = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
			return mediagate.Report{}, errAway
		}
		b.run()
		b.failed(mediagate.CodeGenerationTimeout)
		if got := len(b.Async.Polls()); got < 5 {
			t.Errorf("%d polls, want several", got)
		}
		// The suite bounds repetitions by number; the patience is in the options.
		for _, info := range b.infos {
			if info.ActivityType.Name == "PollJob" && info.ScheduleToCloseTimeout != 10*time.Minute {
				t.Errorf("patience of the last poll %v, want 10m0s", info.ScheduleToCloseTimeout)
			}
		}
	})
	t.Run("out of reach, but the channel heard", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.Async.OnPoll = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
			return mediagate.Report{}, errAway
		}
		b.succeeds(deadline+20*time.Second, 1)
		b.run()
		b.ended(mediagate.StatusCompleted)
	})
	t.Run("out of reach was our own database", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.at(time.Hour, func() { b.Async.End(taskID, activitytest.Success()) })
		b.Store.Fault = func(string) error { // longer than the question is repeated
			if at := b.elapsed(); at >= deadline && at < deadline+12*time.Minute {
				return mediagate.Errorf(mediagate.KindUnavailable, "the database is away")
			}
			return nil
		}
		b.run()
		b.ended(mediagate.StatusCompleted)
	})
	t.Run("the signal was lost", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		outcome := activitytest.Success()
		b.at(time.Hour, func() {
			b.ok(b.StorePoll(b.t.Context(), mediagate.PollResult{TaskID: taskID, N: 1, Outcome: &outcome}))
		})
		b.run()
		b.ended(mediagate.StatusCompleted)
		if got := len(b.Async.Polls()); got != 0 {
			t.Errorf("%d polls for a job whose outcome is stored", got)
		}
	})
}

// A worker that lacks the channel, or has another account under its name, may
// not fail the task for want of an answer: it parks (D11).
func TestD11ChannelGoneAtTheDeadline(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*bundle){
		"no such channel": func(b *bundle) { b.Channels.Set(b.SyncBound()) },
		"another account": func(b *bundle) {
			other, _ := b.Stranger()
			b.Channels.Set(other)
		},
	}
	for name, lose := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			b.at(time.Hour, func() { lose(b) })
			// The channel's tending notices while the last question is repeated.
			b.polled(deadline+30*time.Second, mediagate.PollResult{N: 1, Trouble: mediagate.ParkChannelMissing})
			var parked mediagate.Task
			b.at(deadline+10*time.Minute, func() {
				parked = b.task()
				b.Channels.Set(b.AsyncBound(), b.SyncBound())
				b.Async.End(taskID, activitytest.Success())
			})
			b.succeeds(deadline+20*time.Minute, 1)
			b.run()
			if parked.ParkReason != mediagate.ParkChannelMissing {
				t.Errorf("parked for %q, want %s", parked.ParkReason, mediagate.ParkChannelMissing)
			}
			b.ended(mediagate.StatusCompleted)
			b.submits(taskID)
		})
	}
}

// A job that we are not let see at the deadline may have ended well: the task
// parks, and its patience is one, whatever the channel hears meanwhile.
func TestD10NotLetSeeTheJobAtTheDeadline(t *testing.T) {
	t.Parallel()
	reasons := map[mediagate.Kind]struct {
		park mediagate.ParkReason
		code mediagate.FailureCode
	}{
		mediagate.KindCredentials: {mediagate.ParkCredentials, mediagate.CodeProviderRefused},
		mediagate.KindForbidden:   {mediagate.ParkCredentials, mediagate.CodeProviderRefused},
		mediagate.KindFunds:       {mediagate.ParkFunds, mediagate.CodeProviderAway},
	}
	for kind, want := range reasons {
		refused := func(b *bundle) {
			b.Async.OnPoll = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
				return mediagate.Report{}, mediagate.Errorf(kind, "refused")
			}
		}
		t.Run(kind.String()+" for good", func(t *testing.T) {
			t.Parallel()
			// The channel says so after each restoring, late or never, or even
			// gets answers where the last question gets none.
			for name, hear := range map[string]func(*bundle){
				"never": func(*bundle) {},
				"late": func(b *bundle) {
					b.polled(deadline+14*time.Minute, mediagate.PollResult{N: 1, Trouble: want.park})
					b.polled(deadline+30*time.Minute, mediagate.PollResult{N: 1, Trouble: want.park})
				},
				"answers": func(b *bundle) {
					for d := 7 * time.Minute; d < 30*time.Hour; d += 7 * time.Minute {
						b.at(deadline+d, func() {
							if len(b.Store.Awaits()) == 1 && !b.task().Status.Terminal() {
								b.ok(b.StorePoll(b.t.Context(), mediagate.PollResult{TaskID: taskID, N: 1, Answered: true}))
							}
						})
					}
				},
			} {
				b := setup(t, video)
				refused(b)
				hear(b)
				var parked mediagate.Task
				b.at(deadline+time.Minute, func() { parked = b.task() })
				b.run()
				b.failed(want.code)
				if parked.ParkReason != want.park {
					t.Errorf("%s: parked for %q, want %s", name, parked.ParkReason, want.park)
				}
				within(t, name+": the end", b.endedAt(), deadline+24*time.Hour, deadline+24*time.Hour+10*time.Minute)
				b.submits(taskID)
			}
		})
		t.Run(kind.String()+", then mended", func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			refused(b)
			b.at(deadline+3*time.Minute, func() {
				b.Async.OnPoll = nil
				b.Async.End(taskID, activitytest.Success())
			})
			b.polled(deadline+7*time.Minute, mediagate.PollResult{N: 1, Answered: true})
			b.run()
			b.ended(mediagate.StatusCompleted)
			within(t, "the end", b.endedAt(), deadline+10*time.Minute, deadline+13*time.Minute)
		})
	}
}

// The channel is gone and its tending has not noticed: the last question is
// never answered, and the task parks all the same (D11).
func TestD11ChannelGoneAtTheDeadlineUnnoticed(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.at(time.Hour, func() { b.Channels.Set(b.SyncBound()) })
	var parked mediagate.Task
	b.at(deadline+11*time.Minute, func() {
		parked = b.task()
		b.Channels.Set(b.AsyncBound(), b.SyncBound())
	})
	b.succeeds(deadline+20*time.Minute, 1)
	b.run()
	if parked.ParkReason != mediagate.ParkChannelMissing {
		t.Errorf("parked for %q, want %s", parked.ParkReason, mediagate.ParkChannelMissing)
	}
	b.ended(mediagate.StatusCompleted)
}

// Three hours without workers: the run wakes up long past its deadline and
// finds what the vendor made meanwhile.
func TestD10ThreeHoursWithoutWorkers(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*bundle){
		"the vendor has it": func(b *bundle) { b.Async.End(taskID, activitytest.Success()) },
		"the database has it": func(b *bundle) {
			outcome := activitytest.Success()
			b.ok(b.StorePoll(b.t.Context(), mediagate.PollResult{TaskID: taskID, N: 1, Outcome: &outcome}))
		},
	}
	for name, happen := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			submitByHand(b)
			happen(b)
			b.again(3 * time.Hour)
			b.run()
			b.ended(mediagate.StatusCompleted)
			b.submits(taskID)
			if got := b.endedAt(); got != 3*time.Hour {
				t.Errorf("ended after %v, want at once", got)
			}
		})
	}
}

// submitByHand leaves attempt 1 accepted, as a run that died did.
func submitByHand(b *bundle) {
	b.t.Helper()
	_, _, err := b.Store.OpenAttempt(b.t.Context(), mediagate.Attempt{
		TaskID: taskID, N: 1, Channel: activitytest.AsyncChannel, Provider: activitytest.AsyncProvider, Fingerprint: "account-a",
		Route: b.task().Plan.Routes[0], ExternalID: taskID, SendBefore: b.env.Now().Add(10 * time.Second), CreatedAt: b.env.Now(),
	}, mediagate.Slots{})
	b.ok(err)
	s, err := b.AsyncBound().Vendor.Submit(b.t.Context(), mediagate.Job{TaskID: taskID, ExternalID: taskID})
	b.ok(err)
	_, err = b.Store.AcceptAttempt(b.t.Context(), taskID, 1, s, b.env.Now())
	b.ok(err)
}

// Parked time does not count: the deadline moves by it.
func TestD10ParkedTimeDoesNotCount(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.polled(time.Hour, mediagate.PollResult{N: 1, Trouble: mediagate.ParkJobLost})
	b.polled(time.Hour+7*time.Minute, mediagate.PollResult{N: 1, Answered: true})
	b.run()
	b.failed(mediagate.CodeGenerationTimeout)
	// Parked at 1h0m; restored after one wait of 5 to 6 min, answered within
	// another: the deadline moves by both.
	within(t, "the end", b.endedAt(), deadline+10*time.Minute, deadline+12*time.Minute)
}

// A job that the vendor does not know at the deadline may be a fault of its
// lookup: a person can find out (D11).
func TestD11NotFoundAtTheDeadlineParks(t *testing.T) {
	t.Parallel()
	notFound := func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "no such job")
	}
	t.Run("then found", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.Async.OnPoll = notFound
		var parked mediagate.Task
		b.at(deadline+time.Minute, func() {
			parked = b.task()
			b.Async.OnPoll = nil
			b.Async.End(taskID, activitytest.Success())
		})
		b.polled(deadline+7*time.Minute, mediagate.PollResult{N: 1, Answered: true})
		b.run()
		if parked.ParkReason != mediagate.ParkJobLost {
			t.Errorf("parked for %q, want %s", parked.ParkReason, mediagate.ParkJobLost)
		}
		b.ended(mediagate.StatusCompleted)
	})
	t.Run("for good", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.Async.OnPoll = notFound
		b.run()
		b.failed(mediagate.CodeProviderAway)
		within(t, "the end", b.endedAt(), deadline+24*time.Hour, deadline+24*time.Hour+10*time.Minute)
	})
}

// Times are those of the database: a Temporal server whose clock is off moves
// no deadline.
func TestD10DeadlinesAreByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"ahead": 40 * time.Minute, "behind": -40 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &bundle{t: t}
			b.newRun()
			b.World = activitytest.New(func() time.Time { return b.env.Now().Add(off) })
			b.Store.Add(b.NewVideo())
			b.register()
			b.run()
			b.failed(mediagate.CodeGenerationTimeout)
			if got := b.task(); !got.EndedAt.Equal(got.DeadlineAt) {
				t.Errorf("ended %v after the deadline", got.EndedAt.Sub(got.DeadlineAt))
			}
		})
	}
}

// The job's end is stored after the last question, before the end of the task:
// it counts.
func TestD10OutcomeAtTheLastMoment(t *testing.T) {
	t.Parallel()
	for name, parkedFor := range map[string]mediagate.ParkReason{"waiting": "", "parked": mediagate.ParkJobLost} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			if parkedFor != "" {
				b.polled(time.Minute, mediagate.PollResult{N: 1, Trouble: parkedFor})
			}
			b.Store.Fault = func(method string) error {
				if method == "Settle" && b.elapsed() > time.Hour && b.task().ParkReason == parkedFor {
					_, err := b.Store.RecordOutcome(context.Background(), taskID, 1, activitytest.Success())
					b.ok(err)
				}
				return nil
			}
			b.run()
			b.ended(mediagate.StatusCompleted)
		})
	}
}

// A worker whose clock jumps reads the story with it before it finds that out.
// The runs that it served then keep their deadlines.
func TestD10ClockThatJumpsForAMoment(t *testing.T) {
	t.Parallel()
	for name, healed := range map[string]func(*bundle){
		"the story is read again":   func(b *bundle) { b.env.SignalWorkflow(workflows.SignalWake, nil) },
		"nothing is read meanwhile": func(*bundle) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &bundle{t: t}
			b.newRun()
			var jump atomic.Int64
			b.World = activitytest.New(func() time.Time { return b.env.Now().Add(time.Duration(jump.Load())) })
			b.Store.Add(b.NewVideo())
			b.register()
			b.at(20*time.Second, func() {
				jump.Store(int64(deadline / 2))
				b.env.SignalWorkflow(workflows.SignalWake, nil)
			})
			b.at(30*time.Second, func() {
				jump.Store(0)
				healed(b)
			})
			b.run()
			b.failed(mediagate.CodeGenerationTimeout)
			within(t, "the end", b.endedAt(), deadline, deadline+clockJump)
		})
	}
}

// clockJump is what a run waits at most before it reads a clock again.
const clockJump = time.Minute

// A retry that comes while the last step before the deadline runs moves the
// deadline, as the operator was told.
func TestD10RetryDuringTheLastStepMovesTheDeadline(t *testing.T) {
	t.Parallel()
	order := func(b *bundle) {
		row, err := b.Store.RecordAction(context.Background(), mediagate.Action{TaskID: taskID, Action: mediagate.ActionRetry})
		b.ok(err)
		b.env.SignalWorkflow(workflows.SignalAction, activities.ActionArgs{ID: row.ID, TaskID: taskID, Action: row.Action})
	}
	for name, order := range map[string]func(*bundle){
		"by row": order, "by hand": func(b *bundle) { b.env.SignalWorkflow(mediagate.ActionRetry, nil) },
	} {
		t.Run("asking a last time "+name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			var once atomic.Bool
			b.Async.OnPoll = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
				if once.CompareAndSwap(false, true) {
					order(b)
				}
				return mediagate.Report{State: mediagate.JobRunning}, nil
			}
			b.succeeds(deadline+10*time.Minute, 1)
			b.run()
			b.ended(mediagate.StatusCompleted)
			b.taken(mediagate.ActionRetry)
		})
		t.Run("submitting "+name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			b.Store.Fault = func(method string) error {
				if method == "OpenAttempt" && b.elapsed() < deadline+time.Minute {
					return mediagate.Errorf(mediagate.KindUnavailable, "the database is away")
				}
				return nil
			}
			b.at(deadline-20*time.Second, func() { order(b) })
			b.succeeds(deadline+10*time.Minute, 1)
			b.run()
			b.ended(mediagate.StatusCompleted)
			b.taken(mediagate.ActionRetry)
			b.submits(taskID)
		})
	}
}

// A run that died between a success and its unparking leaves a task that
// waits though it says parked: the run that follows puts that right, or the
// parked time would count.
func TestD10ReplacedRunUnparks(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	submitByHand(b)
	b.ok(b.Store.Park(t.Context(), taskID, mediagate.ParkProviderAway))
	b.again(time.Hour)
	b.run()
	b.failed(mediagate.CodeGenerationTimeout)
	if got := b.endedAt(); got != deadline+time.Hour {
		t.Errorf("ended after %v, want %v", got, deadline+time.Hour)
	}
}

func TestD9SignalsOfOtherAttemptsAreIgnored(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	loads := 0
	b.Store.Fault = func(method string) error {
		if method == "Story" && b.elapsed() > time.Second {
			loads++
		}
		return nil
	}
	for i, n := range []int{0, 2, 3, -1} {
		b.signal(time.Duration(i+1)*10*time.Minute, workflows.SignalUpstream, n)
	}
	b.at(time.Hour, func() {
		if loads != 0 {
			t.Errorf("the story was read %d times for signals of other attempts", loads)
		}
	})
	b.succeeds(time.Hour+time.Minute, 1)
	b.run()
	b.ended(mediagate.StatusCompleted)
	if got := b.endedAt(); got != time.Hour+time.Minute {
		t.Errorf("ended after %v, want 1h1m0s", got)
	}
}

// A signal of the right attempt without an outcome behind it is only a reason
// to look.
func TestD9SignalIsNotBelieved(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.signal(10*time.Minute, workflows.SignalUpstream, 1)
	b.signal(11*time.Minute, workflows.SignalWake, nil)
	b.run()
	b.failed(mediagate.CodeGenerationTimeout)
	if got := b.endedAt(); got != deadline {
		t.Errorf("ended after %v, want %v", got, deadline)
	}
}

// The settings of the story count, not those of the worker's process.
func TestD1TimesComeFromTheStory(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.Activities.Settings = activities.DefaultSettings()
	b.Activities.Settings.ParkTimeout, b.Activities.Settings.ParkRetry = 30*time.Minute, time.Minute
	b.bucketAway(100 * time.Hour)
	b.succeeds(time.Minute, 1)
	b.run()
	b.failed(mediagate.CodeResultUnavailable)
	within(t, "the end", b.endedAt(), 31*time.Minute, 33*time.Minute)
}
