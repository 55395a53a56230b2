package storage_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/pgtest"
	"github.com/mediagate/mediagate/task"
)

// alter applies events beside others, of which one may have come first.
func (b *bench) alter(id string, kinds []mediagate.Kind, events ...task.Event) (task.Changed, bool) {
	changed, err := b.Change(b.Context(), id, events...)
	for _, kind := range kinds {
		if mediagate.Is(err, kind) {
			return changed, false
		}
	}
	if err != nil {
		b.Errorf("%T: %v", events[0], err)
	}
	return changed, err == nil
}

var conflicts = []mediagate.Kind{mediagate.KindConflict}

// These are of changes of one task that meet.
func TestMeetingFacts(t *testing.T) {
	t.Parallel()
	provePooled(t, facts{
		"of twenty senders at once one opens": func(b *bench) {
			id := b.submit(b.newPayer(unit(10)), unit(1))
			var opened atomic.Int64
			b.race(20, func(int) {
				if _, ok := b.alter(id, conflicts, intentOf(id, 1, b.now())); ok {
					opened.Add(1)
				}
			})
			same(b, "opened", opened.Load(), 1)
		},
		"of many ends at once one counts": func(b *bench) {
			p := b.newPayer(unit(100))
			for range 8 {
				id := b.accepted(p, unit(4))
				ends := []end{completed(id, unit(1)), failed(id), cancelled(id), completed(id, unit(2)), failed(id), cancelled(id)}
				var ended, promised atomic.Int64
				b.race(len(ends), func(i int) {
					changed, ok := b.alter(id, conflicts, ends[i].events...)
					if changed.Effects.Entry != "" {
						ended.Add(1)
					}
					if ok && ends[i].status == mediagate.StatusCancelled {
						promised.Add(1)
					}
				})
				t := b.task(id)
				same(b, "ends", ended.Load(), 1)
				same(b, "resolutions", b.count("SELECT COUNT(*) FROM ledger_transfers WHERE task_id = ? AND kind <> 'hold'", id), 1)
				same(b, "promised cancels", promised.Load() > 0, t.Status == mediagate.StatusCancelled)
				same(b, "charged", t.Cost > 0, t.Status == mediagate.StatusCompleted)
			}
		},
		"a cancel and an end at once agree (D13)": func(b *bench) {
			p := b.newPayer(unit(100))
			for range 20 {
				id := b.accepted(p, unit(1))
				var promised atomic.Bool
				b.race(2, func(i int) {
					if i == 0 {
						_, err := b.RequestCancel(b.Context(), p.account, id)
						promised.Store(err == nil)
						if err != nil && !mediagate.Is(err, mediagate.KindConflict) {
							b.Errorf("cancel: %v", err)
						}
						return
					}
					b.alter(id, nil, completed(id, unit(1)).events...)
				})
				want := mediagate.StatusCompleted
				if promised.Load() {
					want = mediagate.StatusCancelled
				}
				same(b, "status", []any{b.task(id).Status, b.task(id).CancelRequestedAt.IsZero()}, []any{want, !promised.Load()})
			}
		},
		"of the end of the task and that of its job at once nothing is polled for": func(b *bench) {
			p := b.newPayer(unit(100))
			for range 8 {
				id := b.accepted(p, unit(1))
				b.claim("c")
				progress := b.quiet(id, time.Second)
				progress.Progress = 10
				b.race(5, func(i int) {
					switch i {
					case 4:
						must(b.Hint(b.Context(), id, 1))
					case 0:
						b.alter(id, nil, cancelled(id).events...)
					case 1:
						must(b.StorePolls(b.Context(), channelName, "c", []mediagate.PollResult{progress}))
					case 2:
						b.alter(id, conflicts, task.PollRequested{})
					case 3:
						b.alter(id, nil, task.VendorEnded{N: 1, Outcome: failure})
					}
				})
				same(b, "waiting", b.waiting(), 0)
				same(b, "states", []any{b.task(id).Status, b.attempt(id).State}, []any{mediagate.StatusCancelled, mediagate.AttemptEnded})
			}
		},
		"of a vendor's answer and an end at once the job is on record (D5)": func(b *bench) {
			p := b.newPayer(unit(100))
			for range 8 {
				id := b.submit(p, unit(1))
				intent := b.intent(id)
				b.change(id, task.SubmitUnknown{Sending: intent.Sending})
				b.race(2, func(i int) {
					if i == 0 {
						b.alter(id, nil, task.Accepted{Sending: intentOf(id, 1, b.now()).Sending, Submission: mediagate.Submission{Ref: ref(id)}, FirstPollAt: b.now()})
					} else {
						b.alter(id, nil, cancelled(id).events...)
					}
				})
				a := b.attempt(id)
				same(b, "attempt", []any{a.State, a.Ref, a.Await != nil}, []any{mediagate.AttemptAbandoned, ref(id), true})
			}
		},
		"a grant and an end at once leave nobody in the queue": func(b *bench) {
			p := b.newPayer(unit(100))
			one, two := b.epoch(channelName), b.epoch("kling-b")
			for range 8 {
				id, other := b.queued(p, channelName, "kling-b"), b.queued(p, channelName, "kling-b")
				b.race(5, func(i int) {
					switch i {
					case 0:
						b.alter(id, nil, cancelled(id).events...)
					case 1:
						b.alter(other, conflicts, task.Queued{N: 1, Channels: []string{"kling-b", channelName}})
					case 2:
						b.alter(other, nil, cancelled(other).events...)
					default:
						g := mediagate.Granting{Channel: channelName, Epoch: one, Slots: limited(1), Most: 2, TakeBack: takeBack}
						if i == 4 {
							g.Channel, g.Epoch, g.Slots.Names = "kling-b", two, []string{"kling-b", channelName}
						}
						must(b.GrantSlots(b.Context(), g))
					}
				})
				same(b, "queued", b.count("SELECT COUNT(*) FROM queue"), 0)
			}
		},
		"all that moves tasks in bulk meets what changes one": func(b *bench) {
			p, q := b.newPayer(unit(200)), b.newPayer(unit(200))
			var tasks []string
			for i := range 24 {
				payer := []payer{p, q}[i%2]
				switch i % 4 {
				case 0:
					tasks = append(tasks, b.accepted(payer, unit(1)))
				case 1:
					tasks = append(tasks, b.parked(payer, mediagate.ParkFunds))
				case 2:
					tasks = append(tasks, b.queued(payer, "kling-b", channelName))
				case 3:
					id := b.accepted(payer, unit(1))
					b.settle(cancelled(id)) // its job may run on
					tasks = append(tasks, id)
				}
			}
			b.pass(mediagate.SlotsLost * plan.Expected)
			drafts := make([]mediagate.NewTask, 8*len(tasks))
			for i := range drafts {
				drafts[i] = b.draft([]payer{p, q}[i%2], 1)
				if i%3 == 0 {
					drafts[i].Task.Plan.Source = &mediagate.Source{TaskID: tasks[i%len(tasks)]}
				}
			}
			b.race(10, func(i int) {
				ctx := b.Context()
				for n := range tasks {
					id := tasks[(n*7+i*5)%len(tasks)]
					var err error
					switch i {
					case 0:
						b.alter(id, conflicts, task.RetryRequested{})
						b.alter(id, nil, task.Asked{})
					case 1:
						_, err = b.RetryParked(ctx, mediagate.Parked{Reasons: []mediagate.ParkReason{mediagate.ParkFunds}, Provider: "kling"}, 4)
					case 2:
						if err = b.ExpireSlots(ctx); err == nil && n%6 == 0 {
							_, err = b.BeginEpoch(ctx, channelName)
						}
					case 3:
						err = b.pollOnce(n)
					case 4:
						var due []mediagate.Wake
						if due, err = b.DueWakes(ctx, 5); err == nil {
							err = b.PutOff(ctx, due, n%2 == 0)
						}
					case 5:
						account := []payer{p, q}[(n*7+i*5)%len(tasks)%2].account
						if _, err = b.EraseTask(ctx, account, id); mediagate.Is(err, mediagate.KindConflict) || mediagate.Is(err, mediagate.KindNotFound) {
							err = nil
						}
					case 6:
						if n%2 == 0 {
							b.alter(id, conflicts, task.CancelRequested{}, task.EndDue{})
						} else {
							b.alter(id, nil, task.VendorEnded{N: 1, Outcome: success(1)}, task.Mirrored{N: 1})
						}
					case 7:
						b.alter(id, append(conflicts, mediagate.KindCapacity), task.Queued{N: 1, Channels: []string{channelName, "kling-b"}})
					case 8:
						if _, err = b.OpenIntent(ctx, id, limited(9), intentOf(id, 1, b.now())); mediagate.Is(err, mediagate.KindConflict) || mediagate.Is(err, mediagate.KindCapacity) {
							err = nil
						}
					case 9:
						if _, _, err = b.Submit(ctx, drafts[n*8]); mediagate.Is(err, mediagate.KindNotFound) {
							err = nil // its source is erased
						}
					}
					if err != nil {
						b.Errorf("%d: %v", i, err)
					}
				}
			})
		},
	})
}

// pollOnce grants slots of a channel, claims rows of it, and stores what they found.
func (b *bench) pollOnce(n int) error {
	ctx := b.Context()
	channel := []string{channelName, "kling-b"}[n%2]
	epoch, err := b.BeginEpoch(ctx, channel)
	if err != nil {
		return err
	}
	fenced := func(err error) error {
		if mediagate.Is(err, mediagate.KindConflict) {
			return nil // by another that began its own
		}
		return err
	}
	if _, err := b.GrantSlots(ctx, mediagate.Granting{Channel: channel, Epoch: epoch, Slots: mediagate.Slots{Names: []string{channel}}, Most: 2, TakeBack: time.Hour}); fenced(err) != nil {
		return err
	}
	rows, err := b.ClaimDue(ctx, channel, epoch, channel, lease, 5)
	if fenced(err) != nil || len(rows) == 0 {
		return fenced(err)
	}
	results := make([]mediagate.PollResult, len(rows))
	for i, r := range rows {
		results[i] = mediagate.PollResult{TaskID: r.TaskID, N: r.N, NextPollAt: b.now(), Answered: true, Progress: n}
	}
	_, err = b.StorePolls(ctx, channel, channel, results)
	return err
}

// meeting has several calls of a store meet at rows that somebody keeps, so that each
// has locked what comes before these when it goes on.
type meeting struct {
	*bench
	payer
	url   string
	db    *sql.DB
	calls sync.WaitGroup
	under atomic.Int64 // calls that have not ended
}

// newMeeting is a meeting at a server of its own tables; settings are those of its
// connections, which come before the usual ones.
func newMeeting(t *testing.T, c storage.Config, settings string) *meeting {
	t.Helper()
	url := pgtest.New(t)
	b := benchOf(t, openPostgres(t, url+noVictims+settings+"&lock_timeout=5000", c))
	return &meeting{bench: b, payer: b.newPayer(unit(1)), url: url, db: openRaw(t, url)}
}

// keep runs the statement in a transaction that lasts until release.
func (m *meeting) keep(query string, args ...any) (release func()) {
	m.Helper()
	tx, err := m.db.BeginTx(m.Context(), nil)
	m.noError(err)
	m.Cleanup(func() { _ = tx.Rollback() })
	_, err = tx.ExecContext(m.Context(), query, args...)
	m.noError(err)
	return func() { _ = tx.Rollback() }
}

// write runs the statement in a transaction that lasts until commit.
func (m *meeting) write(query string) (commit func()) {
	m.Helper()
	tx, err := m.db.BeginTx(m.Context(), nil)
	m.noError(err)
	m.Cleanup(func() { _ = tx.Rollback() })
	_, err = tx.ExecContext(m.Context(), query)
	m.noError(err)
	return func() { m.noError(tx.Commit()) }
}

// begin makes a call, and waits until it has ended or waits for a lock.
func (m *meeting) begin(what string, call func(ctx context.Context) error) {
	m.Helper()
	m.under.Add(1)
	m.calls.Go(func() {
		defer m.under.Add(-1)
		if err := call(m.Context()); err != nil {
			m.Errorf("%s: %v", what, err)
		}
	})
	m.still(what)
}

// still waits until each call that has not ended waits for a lock.
func (m *meeting) still(what string) {
	m.Helper()
	eventually(m.T, what+" ends or waits", func(ctx context.Context) error {
		var waiting int64
		err := m.db.QueryRowContext(ctx, `SELECT COUNT(DISTINCT l.pid) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
			WHERE a.datname = current_database() AND NOT l.granted`).Scan(&waiting)
		if under := m.under.Load(); err == nil && waiting != under {
			err = fmt.Errorf("%d of %d wait", waiting, under)
		}
		return err
	})
}

func (m *meeting) submitOn(id, source string) {
	m.Helper()
	n := m.named(m.payer, id)
	if source != "" {
		n.Task.Plan.Source = &mediagate.Source{TaskID: source}
	}
	m.noError(errOf(m.Submit(m.Context(), n)))
}

// A key and the one that it was rotated into are changed, where a clock that went back
// gave the later one the smaller id.
func TestKeyMeetsItsSuccessor(t *testing.T) {
	t.Parallel()
	var made atomic.Int64
	m := newMeeting(t, storage.Config{NewID: func(prefix string) string { return fmt.Sprintf("%s%09d", prefix, 999_999_999-made.Add(1)) }}, "")
	second, err := m.RotateKey(m.Context(), m.key, mediagate.KeySecret{Hash: sha256.Sum256([]byte("two"))}, time.Hour)
	m.noError(err)
	release := m.keep("SELECT 1 FROM keys WHERE id = $1 FOR NO KEY UPDATE", m.key)
	for _, id := range []string{m.key, second.ID} {
		m.begin("change "+id, func(ctx context.Context) error {
			_, err := m.UpdateKey(ctx, id, func(k *mediagate.Key) error {
				k.InFlight = new(3)
				return nil
			})
			return err
		})
	}
	release()
	m.calls.Wait()
}

// A submit that waits for its account while an operator suspends it is refused.
func TestSubmitMeetsSuspension(t *testing.T) {
	t.Parallel()
	m := newMeeting(t, storage.Config{}, "")
	commit := m.write("UPDATE accounts SET suspended = true")
	m.begin("submit", func(ctx context.Context) error {
		if _, _, err := m.Submit(ctx, m.named(m.payer, "task_1")); !mediagate.Is(err, mediagate.KindForbidden) {
			return fmt.Errorf("want a refusal, got %w", err)
		}
		return nil
	})
	commit()
	m.calls.Wait()
}

// A channel that took over the account of another one grants slots under that one's
// name while a worker queues tasks for both.
func TestGrantMeetsQueue(t *testing.T) {
	t.Parallel()
	m := newMeeting(t, storage.Config{}, "")
	m.submitOn("task_1", "")
	m.noError(m.SeenChannel(m.Context(), []string{"a", "m", "z"}))
	epoch := m.epoch("a")
	release := m.keep("SELECT 1 FROM channels WHERE name = 'm' FOR NO KEY UPDATE")
	m.begin("queue", func(ctx context.Context) error {
		_, err := m.Change(ctx, "task_1", task.Queued{N: 1, Channels: []string{"a", "m", "z"}})
		return err
	})
	m.begin("grant", func(ctx context.Context) error {
		_, err := m.GrantSlots(ctx, mediagate.Granting{
			Channel: "a", Epoch: epoch, Slots: mediagate.Slots{Names: []string{"z", "a"}, Limit: 1}, Most: 1, TakeBack: time.Hour,
		})
		return err
	})
	release()
	m.calls.Wait()
}

// A source ends while a task that waits for it asks, and the task's wake is overdue: the end
// does not bring it forward, so the question has to see the end (D21).
func TestEndMeetsQuestion(t *testing.T) {
	t.Parallel()
	m := newMeeting(t, storage.Config{}, "")
	source := m.submit(m.payer, 0)
	id := m.user(m.payer, source)
	m.write("UPDATE wakes SET wake_at = wake_at - interval '1 minute'")()
	release := m.keep("SELECT 1 FROM wakes WHERE task_id = $1 FOR UPDATE", id)
	m.begin("end", func(ctx context.Context) error {
		return errOf(m.Change(ctx, source, cancelled(source).events...))
	})
	var asked task.Changed
	m.begin("ask", func(ctx context.Context) (err error) {
		asked, err = m.Change(ctx, id, task.Asked{})
		return err
	})
	release()
	m.calls.Wait()
	same(m.bench, "next", asked.Step.Kind, task.Settle)
}

// A task is erased whose outcome others worked on, while the progress of these, which
// have ended meanwhile, is stored.
func TestEraseMeetsPolls(t *testing.T) {
	t.Parallel()
	m := newMeeting(t, storage.Config{}, "")
	m.submitOn("task_source", "")
	m.settle(cancelled("task_source"))
	m.submitOn("task_0", "")
	var results []mediagate.PollResult
	for _, id := range []string{"task_0", "task_3", "task_2", "task_1"} {
		if id != "task_0" {
			m.submitOn(id, "task_source")
		}
		m.accept(id, m.now())
		results = append(results, mediagate.PollResult{TaskID: id, N: 1, Answered: true, Progress: 50, NextPollAt: m.now().Add(time.Minute)})
	}
	m.claim("claim")
	first := m.keep("SELECT 1 FROM tasks WHERE id = 'task_0' FOR NO KEY UPDATE")
	m.begin("store polls", func(ctx context.Context) error {
		_, err := m.StorePolls(ctx, channelName, "claim", results)
		return err
	})
	for _, id := range []string{"task_3", "task_2", "task_1"} {
		m.settle(cancelled(id))
	}
	second := m.keep("SELECT 1 FROM tasks WHERE id = 'task_2' FOR NO KEY UPDATE")
	first()
	m.still("store polls, up to task_2")
	m.begin("erase", func(ctx context.Context) error {
		_, err := m.EraseTask(ctx, m.account, "task_source")
		return err
	})
	second()
	m.calls.Wait()
}

// Two tasks end that made the same things, which they tell in different orders.
func TestSettleMeetsSettle(t *testing.T) {
	t.Parallel()
	m := newMeeting(t, storage.Config{}, "")
	for _, id := range []string{"task_0", "task_1", "task_2"} {
		m.submitOn(id, "")
	}
	release := m.keep("INSERT INTO assets (account_id, kind, vendor_id, task_id, position) VALUES ($1, 'voice', 'b', 'task_0', 0)", m.account)
	for i, voices := range [][]string{{"a", "b", "c"}, {"c", "b", "a"}} {
		id := fmt.Sprint("task_", i+1)
		sent := intentOf(id, 1, m.now())
		m.begin("settle "+id, func(ctx context.Context) error {
			o := mediagate.Outcome{Succeeded: true, Made: &mediagate.Made{Voices: voices}}
			return errOf(m.Change(ctx, id, sent, task.Accepted{Sending: sent.Sending, Submission: mediagate.Submission{Outcome: &o}}, task.Mirrored{N: 1}))
		})
	}
	release()
	m.calls.Wait()
}

// Slots are granted to tasks that have waited in one order, while a breaker closes for
// which they are parked in another: both move their wakes.
func TestGrantMeetsRetry(t *testing.T) {
	t.Parallel()
	m := newMeeting(t, storage.Config{}, "")
	epoch := m.epoch(channelName)
	for _, id := range []string{"task_3", "task_2", "task_1"} {
		m.submitOn(id, "")
		m.change(id, task.StepEnded{Step: task.Submit, N: 1, Failed: true, Kind: mediagate.KindTransient},
			task.Queued{N: 1, Channels: []string{channelName}}, task.Asked{})
	}
	_, err := m.db.ExecContext(m.Context(), "UPDATE tasks SET wait_since = wait_since + CAST(right(id, 1) AS int) * interval '1 second'")
	m.noError(err)
	release := m.keep("SELECT 1 FROM wakes WHERE task_id = 'task_2' FOR UPDATE")
	m.begin("grant", func(ctx context.Context) error {
		got, err := m.GrantSlots(ctx, mediagate.Granting{
			Channel: channelName, Epoch: epoch, Slots: mediagate.Slots{Names: []string{channelName}}, Most: 3, TakeBack: time.Hour,
		})
		if err == nil && len(got.Tasks) != 3 {
			err = fmt.Errorf("granted to %v", got.Tasks)
		}
		return err
	})
	m.begin("retry", func(ctx context.Context) error {
		retried, err := m.RetryParked(ctx, mediagate.Parked{Reasons: []mediagate.ParkReason{mediagate.ParkProviderAway}}, 10)
		if err == nil && retried != 3 {
			err = fmt.Errorf("%d try again", retried)
		}
		return err
	})
	release()
	m.calls.Wait()
}

// Slots of abandoned jobs expire while the vendor's answer for one of them comes, which
// tells that the job runs.
func TestExpiryMeetsLateAnswer(t *testing.T) {
	t.Parallel()
	m := newMeeting(t, storage.Config{}, "&enable_seqscan=off&enable_hashjoin=off&enable_mergejoin=off")
	for i, id := range []string{"task_1", "task_2"} {
		m.submitOn(id, "")
		sent := intentOf(id, 1, m.now())
		m.change(id, sent, task.SubmitUnknown{Sending: sent.Sending}, task.CancelRequested{}, task.EndDue{})
		_, err := m.db.ExecContext(m.Context(), "UPDATE attempts SET slot_until = $1 WHERE task_id = $2", time.Now().Add(time.Duration(i-2)*time.Hour), id)
		m.noError(err)
	}
	release := m.keep("SELECT 1 FROM attempts WHERE task_id = 'task_1' FOR NO KEY UPDATE")
	m.begin("expire", m.ExpireSlots)
	m.change("task_2", task.Accepted{Sending: intentOf("task_2", 1, m.now()).Sending, Submission: mediagate.Submission{Ref: ref("task_2")}, FirstPollAt: m.now()})
	release()
	m.calls.Wait()
	for id, want := range map[string]mediagate.AttemptState{"task_1": mediagate.AttemptEnded, "task_2": mediagate.AttemptAbandoned} {
		if a := m.attempt(id); a.State != want || (a.Await != nil) != (want == mediagate.AttemptAbandoned) {
			t.Errorf("the attempt of %s is %+v, want %s", id, a, want)
		}
	}
}

// A slot is granted to a task whose row somebody has locked: the channel's other tasks
// do not wait for it.
func TestGrantMeetsLockedTask(t *testing.T) {
	t.Parallel()
	m := newMeeting(t, storage.Config{}, "")
	m.submitOn("task_1", "")
	m.change("task_1", task.Queued{N: 1, Channels: []string{channelName}})
	release := m.keep("SELECT 1 FROM tasks WHERE id = 'task_1' FOR NO KEY UPDATE")
	same(m.bench, "granted", m.grant(m.epoch(channelName), 1).Tasks, []string{"task_1"})
	release()
}

// A task is erased while the charge of its vendor is counted.
func TestEraseMeetsCharges(t *testing.T) {
	t.Parallel()
	m := newMeeting(t, storage.Config{}, "")
	m.submitOn("task_1", "")
	m.accept("task_1", m.now())
	o := success(1)
	o.VendorCharge = mediagate.ChargedBy("0.25", "USD")
	m.settle(completedBy("task_1", 1, o, files("task_1")))
	commit := m.write("UPDATE attempts SET vendor_uncounted_at = NULL WHERE task_id = 'task_1'")
	m.begin("erase", func(ctx context.Context) error { return errOf(m.EraseTask(ctx, m.account, "task_1")) })
	commit()
	m.calls.Wait()
	counted, err := m.CountVendorCharges(m.Context(), 10)
	m.noError(err)
	same(m.bench, "counted again", counted, 0)
}

// A vendor's callback comes while the answer before it is stored for a task that is parked (D8).
func TestAnswerMeetsHint(t *testing.T) {
	t.Parallel()
	m := newMeeting(t, storage.Config{}, "")
	m.submitOn("task_1", "")
	m.accept("task_1", m.now())
	m.claim("claim")
	commit := m.write("UPDATE awaits SET hinted_at = now() + interval '1 second' WHERE task_id = 'task_1'")
	m.begin("answer", func(ctx context.Context) error {
		return errOf(m.Change(ctx, "task_1", task.Progressed{N: 1, Claim: "claim", Percent: 5, NextAt: m.now().Add(time.Hour)}))
	})
	commit()
	m.calls.Wait()
	_, due, err := m.AwaitStats(m.Context(), channelName)
	m.noError(err)
	if due.After(m.now().Add(time.Minute)) {
		t.Errorf("the next poll is due at %s, an hour after the hint", due)
	}
}
