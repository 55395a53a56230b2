package channel_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/task"
)

// account is one channel's poller inside a bubble of synctest, with a vendor whose jobs end by
// the clock.
type account struct {
	*activitytest.World
	t        *testing.T
	channel  channel.Channel
	accounts *channel.Accounts

	mu     sync.Mutex
	ends   map[string]time.Time // when each job ends, by external id
	calls  [][]string           // the jobs of each request
	late   []time.Duration      // how late each end was when its run was signalled
	woken  []string             // tasks whose runs were signalled for another reason
	last   *channel.Poller      // the last poller that ran
	away   bool                 // the vendor does not answer for one job
	back   time.Time            // the vendor does not answer before that time
	waits  bool                 // jobs wait for modal parameters
	spoil  func() error         // the result of asking for the job "spoilt"
	slow   time.Duration        // how much longer than usual a call for one job takes
	busy   string               // the vendor asks not to be polled for this job for a minute
	room   int                  // how many copies there is room for
	copies []string             // tasks whose ends came with room for a copy

	// offer, if set, returns what the vendor says about a job that has ended.
	offer func(report *mediagate.Report, since time.Duration)
}

const spoilt = "task-3"

func newAccount(t *testing.T, c mediagate.Channel) *account {
	t.Helper()
	a := &account{World: activitytest.New(t, time.Now), t: t, ends: make(map[string]time.Time)}
	a.channel = a.AsyncBound()
	c.Name, c.Provider = a.channel.Name, a.channel.Provider
	a.channel.Channel, a.channel.Vendor = c, single{a}
	a.Async.OnSubmit = nil
	a.Channels.Set(a.channel)
	a.accounts = &channel.Accounts{
		Channels: a.Channels, Store: a.Store, Breakers: a.Activities.Breakers, Workflows: a, Now: time.Now,
		Logger: a.Activities.Logger, NewID: a.Activities.NewID,
	}
	return a
}

// accept begins jobs of that duration.
func (a *account) accept(n int, duration time.Duration) {
	a.t.Helper()
	for range n {
		video := a.NewVideo()
		video.Plan.Modal = time.Hour
		a.mu.Lock()
		video.ID = fmt.Sprintf("task-%d", len(a.ends))
		a.ends[video.ID] = time.Now().Add(duration)
		a.mu.Unlock()
		a.Store.Add(video)
		a.submit(video.ID)
	}
}

// submit makes the first attempt of a task, which the vendor accepts.
func (a *account) submit(id string) {
	a.t.Helper()
	route := a.NewVideo().Plan.Routes[0]
	sent := task.Sending{
		N: 1, Channel: a.channel.Name, Provider: a.channel.Provider, Fingerprint: a.channel.Fingerprint, Route: route,
		ExternalID: id,
	}
	if _, err := a.Store.OpenIntent(a.t.Context(), id, a.channel.Slots(), task.IntentStored{Sending: sent}); err != nil {
		a.t.Error(err)
	}
	a.change(id, task.Accepted{
		Sending: sent, Submission: mediagate.Submission{
			Ref: mediagate.JobRef{JobID: "job-" + id, ExternalID: id, Operation: route.Operation},
		},
		FirstPollAt: time.Now().Add(a.channel.FirstPoll()),
	})
}

func (a *account) change(id string, events ...task.Event) {
	a.t.Helper()
	if _, err := a.Store.Change(a.t.Context(), id, events...); err != nil {
		a.t.Error(err)
	}
}

func (a *account) state(id string) task.State {
	st, _ := a.Store.Peek(id)
	return st
}

// poll runs the channel's poller for that long.
func (a *account) poll(long time.Duration) {
	a.t.Helper()
	a.pollFor(a.channel.Name, long)
}

// pollFor is poll for the rows that wait under the name.
func (a *account) pollFor(name string, long time.Duration) {
	a.t.Helper()
	p, err := a.accounts.Poller(a.t.Context(), name)
	if err != nil {
		a.t.Fatal(err)
	}
	a.last = p
	calls, cancel := context.WithTimeout(a.t.Context(), long)
	defer cancel()
	if err := p.Run(a.t.Context(), calls); err != nil {
		a.t.Error(err)
	}
}

// report returns what the vendor says about a job.
func (a *account) report(ref mediagate.JobRef) mediagate.Report {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Now().Before(a.ends[ref.ExternalID]) {
		state := mediagate.JobRunning
		if a.waits {
			state = mediagate.JobWaiting
		}
		return mediagate.Report{Ref: ref, Named: true, State: state, Percent: -1}
	}
	outcome := activitytest.Success()
	report := mediagate.Report{Ref: ref, Named: true, State: mediagate.JobSucceeded, Outcome: &outcome}
	if a.offer != nil {
		a.offer(&report, time.Since(a.ends[ref.ExternalID]))
	}
	return report
}

func (a *account) called(refs ...mediagate.JobRef) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var ids []string
	for _, ref := range refs {
		ids = append(ids, ref.ExternalID)
	}
	a.calls = append(a.calls, ids)
}

// StepsChanged notes how late it comes.
func (a *account) StepsChanged(_ context.Context, _ string, ended []channel.StepChange) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range ended {
		a.late = append(a.late, time.Since(a.ends[e.Changed.State.ID]))
		if e.Release != nil {
			a.copies = append(a.copies, e.Changed.State.ID)
		}
	}
}

// RoomToCopy counts the room that is taken and given back.
func (a *account) RoomToCopy(string) (release func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.room == 0 {
		return nil
	}
	a.room--
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.room++
	}
}

// Wake notes the tasks.
func (a *account) Wake(_ context.Context, _ string, ids []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.woken = append(a.woken, ids...)
}

// latest returns how late the last end was signalled.
func (a *account) latest() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Max(a.late)
}

// single is a vendor that reports one job a call.
type single struct{ *account }

func (s single) Submit(context.Context, mediagate.Job) (mediagate.Submission, error) {
	return mediagate.Submission{}, mediagate.Errorf(mediagate.KindInternal, "not for this test")
}

func (s single) Poll(_ context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	s.called(ref)
	time.Sleep(50*time.Millisecond + s.slow)
	if s.away || time.Now().Before(s.back) {
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindTransient, "away")
	}
	if s.spoil != nil && ref.ExternalID == spoilt {
		return mediagate.Report{}, s.spoil()
	}
	if s.busy == ref.ExternalID {
		return mediagate.Report{}, &mediagate.Error{Kind: mediagate.KindThrottled, Message: "later", RetryAfter: time.Minute}
	}
	return s.report(ref), nil
}

// batching is a vendor that reports many jobs in one call.
type batching struct {
	single
	all func(refs []mediagate.JobRef) ([]providers.Answer, error)
}

func (b batching) PollAll(_ context.Context, refs []mediagate.JobRef) ([]providers.Answer, error) {
	b.called(refs...)
	return b.all(refs)
}

var _ providers.Batcher = batching{}

// answers returns the vendor's answers for all of the jobs.
func (a *account) answers(refs []mediagate.JobRef) ([]providers.Answer, error) {
	answers := make([]providers.Answer, len(refs))
	for i, ref := range refs {
		answers[i].Report = a.report(ref)
	}
	return answers, nil
}

// choosing is a vendor whose adapter cannot say for one job whether it can be asked for together
// with others.
type choosing struct{ batching }

func (choosing) Batches(ref mediagate.JobRef) bool {
	if ref.ExternalID == spoilt {
		panic("a bug of the adapter")
	}
	return true
}

func (a *account) batches(most int, all func(refs []mediagate.JobRef) ([]providers.Answer, error)) {
	a.channel.Vendor = batching{single{a}, all}
	a.channel.Adapter.Description = providers.Description{Operations: map[string]providers.Operation{
		a.NewVideo().Plan.Routes[0].Operation: {Batch: most},
	}}
	a.Channels.Set(a.channel)
}

// TestPollerSeesEnds runs the whole poller on the tests' store. It checks how late ends are seen,
// and how many calls are made.
func TestPollerSeesEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ duration, latest time.Duration }{
		"of 5 s": {5300 * time.Millisecond, 3 * time.Second}, "of 300 s": {300 * time.Second, 16 * time.Second},
	} {
		inBubble(t, name, func(t *testing.T) {
			a := newAccount(t, mediagate.Channel{RequestsPerSecond: 10, PollMin: 2 * time.Second, PollMax: 15 * time.Second})
			for i := range 20 {
				a.accept(1, c.duration+time.Duration(i*200)*time.Millisecond)
			}
			a.poll(c.duration + 20*time.Second)
			if len(a.late) != 20 || a.latest() > c.latest {
				t.Errorf("%d ends were seen, the last one %v late", len(a.late), a.latest())
			}
		})
	}
}

// TestPollerNoticesHints checks that a hint for a row that is due much later is noticed between
// two claims.
func TestPollerNoticesHints(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, mediagate.Channel{PollMin: 10 * time.Minute, PollMax: 10 * time.Minute})
		const jobs = 5
		a.accept(jobs, time.Minute)
		for i := range jobs {
			time.AfterFunc(
				time.Minute+time.Duration(i)*777*time.Millisecond,
				func() { a.change(fmt.Sprintf("task-%d", i), task.PollRequested{}) },
			)
		}
		a.poll(2 * time.Minute)
		if len(a.late) != jobs || len(a.calls) != jobs {
			t.Fatalf("%d ends of %d were seen by %d calls", len(a.late), jobs, len(a.calls))
		}
		for i, late := range a.late {
			if late -= time.Duration(i) * 777 * time.Millisecond; late > 300*time.Millisecond {
				t.Errorf("end %d is seen %s after its hint", i, late)
			}
		}
	})
}

// TestPollerSpendsItsBudget checks an account with more rows than its budget can ask for. The
// budget is used up and not exceeded, and no row starves, not even one that was put off while
// many waited.
func TestPollerSpendsItsBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const jobs, rps = 100, 10
		a := newAccount(t, mediagate.Channel{RequestsPerSecond: rps, PollMin: time.Second, PollMax: 2 * time.Second})
		a.accept(jobs, time.Hour)
		a.poll(30 * time.Second) // until all rows are known
		a.calls = nil
		const window = time.Minute
		began := time.Now()
		a.poll(window)
		if got, most := len(a.calls), rps*int(window.Seconds()); got < most*9/10 || got > most+rps {
			t.Errorf("%d requests in %v, the budget has %d", got, time.Since(began), most)
		}
		perJob := make(map[string]int)
		for _, ids := range a.calls {
			perJob[ids[0]]++
		}
		for id := range a.ends {
			if perJob[id] < 3 {
				t.Errorf("%s was asked for %d times, an even share has 6", id, perJob[id])
			}
		}
		for i := range jobs - 5 {
			a.change(fmt.Sprintf("task-%d", i), task.VendorEnded{N: 1, Outcome: activitytest.Success()})
		}
		a.calls = nil
		a.poll(20 * time.Second)
		if got := len(a.calls); got < 5*9 || got > 5*11 {
			t.Errorf("%d requests for the last 5 jobs in 20 s, want one in two seconds and job", got)
		}
	})
}

// TestPollerHeedsRetryAfter checks that a job is not polled before the time that the vendor
// named, even if the budget would allow it.
func TestPollerHeedsRetryAfter(t *testing.T) {
	t.Parallel()
	for name, jobs := range map[string]int{"few jobs": 3, "more than the budget": 50} {
		inBubble(t, name, func(t *testing.T) {
			a := newAccount(t, mediagate.Channel{RequestsPerSecond: 10, PollMin: time.Second, PollMax: 2 * time.Second})
			a.busy = "task-0"
			a.accept(jobs, time.Hour)
			a.poll(50 * time.Second)
			asked := make(map[string]int)
			for _, ids := range a.calls {
				asked[ids[0]]++
			}
			if asked["task-0"] != 1 || asked["task-1"] < 5 {
				t.Errorf(
					"asked %d times for the job to be left alone for a minute, and %d times for another", asked["task-0"],
					asked["task-1"],
				)
			}
		})
	}
}

// TestPollerBeats checks that a beat shows how late the polls are and what went wrong, and shows
// that no more when no task waits.
func TestPollerBeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, mediagate.Channel{RequestsPerSecond: 10, PollMin: time.Second, PollMax: 2 * time.Second})
		a.accept(1, 10*time.Second)
		time.Sleep(5 * time.Second) // no poller runs
		a.busy = "task-0"
		a.poll(3 * time.Second)
		if last, _ := a.last.Beat(); last.Waiting != 1 || last.LateMilli < 3000 ||
			last.LastError != mediagate.KindThrottled.String() || last.Polls != 1 {
			t.Errorf("the beat %+v, want one row, seconds late, and the vendor's refusal", last)
		}
		a.busy = ""
		a.poll(2 * time.Minute)
		if last, _ := a.last.Beat(); len(a.late) != 1 || last.Waiting != 0 || last.LateMilli != 0 || last.LastError != "" {
			t.Errorf("%d ends, then the beat %+v, want an account at rest", len(a.late), last)
		}
	})
}

// TestPollerAsksInBatches checks that jobs that a vendor reports together cost the budget one
// request.
func TestPollerAsksInBatches(t *testing.T) {
	t.Parallel()
	account := mediagate.Channel{RequestsPerSecond: 1, PollMin: 2 * time.Second, PollMax: 15 * time.Second}
	inBubble(t, "each answer is its row's", func(t *testing.T) {
		a := newAccount(t, account)
		a.batches(10, func(refs []mediagate.JobRef) ([]providers.Answer, error) {
			answers, err := a.answers(refs)
			for i, ref := range refs {
				if ref.ExternalID == "task-3" {
					answers[i] = providers.Answer{Err: mediagate.Errorf(mediagate.KindNotFound, "no such job")}
				}
			}
			return answers, err
		})
		a.accept(1, 5*time.Second)
		a.accept(39, time.Hour)
		a.poll(60 * time.Second)
		most := 0
		for _, ids := range a.calls {
			most = max(most, len(ids))
		}
		if len(a.calls) > 62 || most != 10 {
			t.Errorf(
				"%d requests in a minute, the largest for %d jobs: want at most one a second, for ten jobs", len(a.calls), most,
			)
		}
		if len(a.late) != 2 || a.latest() > time.Minute {
			t.Errorf("late %v, want the job that ended and the one that is lost", a.late)
		}
		for id, trouble := range map[string]mediagate.ParkReason{
			"task-0": "", "task-3": mediagate.ParkJobLost, "task-4": "",
		} {
			if row, err := a.Store.Attempt(
				t.Context(), id, 1,
			); err != nil || row.Trouble != trouble || (row.Outcome != nil) != (id == "task-0") {
				t.Errorf("%s: %+v (%v)", id, row, err)
			}
		}
	})
	// D8, D11: one job that the vendor has lost, or that the adapter cannot read, costs the other
	// jobs neither their ends nor their good name.
	for name, spoil := range map[string]func() error{
		"one that the vendor lacks": func() error { return mediagate.Errorf(mediagate.KindNotFound, "no such job") },
		"one that panics":           func() error { panic("a bug of the adapter") },
	} {
		inBubble(t, name, func(t *testing.T) {
			a := newAccount(t, account)
			a.spoil = spoil
			a.batches(10, func(refs []mediagate.JobRef) ([]providers.Answer, error) {
				if slices.ContainsFunc(refs, func(ref mediagate.JobRef) bool { return ref.ExternalID == spoilt }) {
					return nil, spoil()
				}
				return a.answers(refs)
			})
			a.accept(40, time.Minute)
			a.poll(3 * time.Minute)
			for i := range 40 {
				id := fmt.Sprintf("task-%d", i)
				row, err := a.Store.Attempt(t.Context(), id, 1)
				if err != nil || id != spoilt && (row.Trouble != "" || row.Outcome == nil) {
					t.Errorf("%s: trouble %q, outcome %+v (%v)", id, row.Trouble, row.Outcome, err)
				}
			}
			alone := 0
			for _, ids := range a.calls {
				if slices.Equal(ids, []string{spoilt}) {
					alone++
				}
			}
			if alone < 2 {
				t.Errorf("the job that spoils the others' polls was asked for %d times alone, want again and again", alone)
			}
			if most := 181; len(a.calls) > most {
				t.Errorf("%d requests in three minutes, the budget has %d", len(a.calls), most)
			}
		})
	}
	inBubble(t, "one that a slow vendor lacks", func(t *testing.T) {
		a := newAccount(t, mediagate.Channel{PollMin: time.Second, PollMax: 15 * time.Second})
		a.slow = 10 * time.Second
		a.spoil = func() error { return mediagate.Errorf(mediagate.KindNotFound, "no such job") }
		a.batches(20, func([]mediagate.JobRef) ([]providers.Answer, error) { return nil, a.spoil() })
		a.accept(20, time.Hour)
		a.poll(15 * time.Minute)
		if row, err := a.Store.Attempt(t.Context(), spoilt, 1); err != nil || row.Trouble != mediagate.ParkJobLost {
			t.Errorf("trouble %q, want that the job counts as lost (%v)", row.Trouble, err)
		}
	})
	inBubble(t, "one that the adapter panics over when it is to choose", func(t *testing.T) {
		a := newAccount(t, account)
		a.batches(10, a.answers)
		a.channel.Vendor = choosing{batching{single{a}, a.answers}}
		a.Channels.Set(a.channel)
		a.accept(40, time.Second)
		a.poll(30 * time.Second)
		if len(a.late) != 40 {
			t.Errorf("%d ends, want 40", len(a.late))
		}
	})
	for name, all := range map[string]func([]mediagate.JobRef) ([]providers.Answer, error){
		"a call that fails": func([]mediagate.JobRef) ([]providers.Answer, error) {
			return nil, mediagate.Errorf(mediagate.KindTransient, "away")
		},
		"a call that panics": func([]mediagate.JobRef) ([]providers.Answer, error) { panic("a bug of the adapter") },
		"too few answers": func([]mediagate.JobRef) ([]providers.Answer, error) {
			return make(
				[]providers.Answer, 1,
			), nil
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			a := newAccount(t, account)
			a.away = true
			a.batches(10, func(refs []mediagate.JobRef) ([]providers.Answer, error) {
				if a.away {
					return all(refs)
				}
				return a.answers(refs)
			})
			a.accept(5, time.Second)
			a.poll(10 * time.Second)
			if len(a.late) != 0 || len(a.calls) == 0 {
				t.Fatalf("%d ends in %d calls that fail", len(a.late), len(a.calls))
			}
			a.away = false
			a.poll(30 * time.Second)
			if len(a.late) != 5 {
				t.Errorf("%d ends, want 5", len(a.late))
			}
		})
	}
}

// TestPollerWaitsForMedia checks a job that succeeded, and whose media are not all named. The
// vendor is asked again for two minutes. Then the media that are there count. If there are none,
// that counts against the channel.
func TestPollerWaitsForMedia(t *testing.T) {
	t.Parallel()
	whole := activitytest.Success().Media
	for name, tt := range map[string]struct {
		offer  func(report *mediagate.Report, since time.Duration)
		after  time.Duration // how long after the job's end it is seen
		media  int
		counts int // how much counts against the channel
	}{
		"none ever": {
			func(r *mediagate.Report, _ time.Duration) { r.Offer(&mediagate.Outcome{}, true) }, 2 * time.Minute, 0, 1,
		},
		"none at first": {
			func(r *mediagate.Report, since time.Duration) {
				r.Offer(&mediagate.Outcome{}, true)
				if since > time.Minute {
					r.Offer(&mediagate.Outcome{Media: whole}, true)
				}
			}, time.Minute, 1, 0,
		},
		"one of two": {
			func(r *mediagate.Report, _ time.Duration) {
				r.Offer(
					&mediagate.Outcome{Media: whole}, false,
				)
			}, 2 * time.Minute, 1, 0,
		},
		"one of two at first": {
			func(r *mediagate.Report, since time.Duration) {
				media := whole
				if since > 30*time.Second {
					media = append(slices.Clone(whole), whole...)
				}
				r.Offer(&mediagate.Outcome{Media: media}, since > 30*time.Second)
			}, 30 * time.Second, 2, 0,
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			a := newAccount(t, mediagate.Channel{PollMin: time.Second, PollMax: 15 * time.Second})
			a.offer = tt.offer
			a.accept(1, 10*time.Second)
			a.poll(5 * time.Minute)
			row, err := a.Store.Attempt(t.Context(), "task-0", 1)
			if err != nil || row.Outcome == nil {
				t.Fatalf("%+v, %v", row, err)
			}
			if got := len(row.Outcome.Media); got != tt.media || row.Outcome.Succeeded != (tt.media > 0) {
				t.Errorf("the outcome is %+v", row.Outcome)
			}
			if f := row.Outcome.Failure; tt.media == 0 && (f == nil || f.Code != mediagate.CodeResultUnavailable) {
				t.Errorf("the failure is %+v", f)
			}
			if late := a.late[0]; late < tt.after || late > tt.after+20*time.Second {
				t.Errorf("the run is signalled %s after the end, want about %s", late, tt.after)
			}
			a.Activities.Breakers.Flush(t.Context())
			rates, err := a.Store.ChannelRates(t.Context(), time.Now().Add(-time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			if got := rates[a.channel.Name].Failures; got != tt.counts {
				t.Errorf("%d failures are counted, want %d", got, tt.counts)
			}
		})
	}
}
