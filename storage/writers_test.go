package storage_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/limit"
	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/pgtest"
	"github.com/mediagate/mediagate/task"
)

// tenant is an account with money and a key.
type tenant struct {
	*storage.Store
	account, key string
}

func newTenant(t *testing.T, s *storage.Store, name string) tenant {
	t.Helper()
	account, err := s.CreateAccount(t.Context(), mediagate.Account{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := s.Grant(t.Context(), account.ID, 1_000_000, "opening"); err != nil {
		t.Fatal(err)
	}
	key, err := s.CreateKey(t.Context(), mediagate.Key{AccountID: account.ID, Unlimited: true}, sha256.Sum256([]byte(name)))
	if err != nil {
		t.Fatal(err)
	}
	return tenant{s, account.ID, key.ID}
}

func (n tenant) submit(ctx context.Context, id, group string, capacity int) error {
	_, _, err := n.Submit(ctx, mediagate.NewTask{Group: group, Capacity: capacity, Task: mediagate.Task{
		ID: id, AccountID: n.account, KeyID: n.key, Model: "m", Type: mediagate.TypeImage, Params: []byte("{}"), Hold: 1,
		DeadlineAt: time.Now().Add(time.Hour),
	}})
	return err
}

func (n tenant) settle(ctx context.Context, id string) error {
	_, err := n.Change(ctx, id, task.CancelRequested{}, task.EndDue{})
	return err
}

// complete ends a task with what its first attempt made.
func (n tenant) complete(ctx context.Context, id string, made *mediagate.Made, files []mediagate.Result) error {
	_, err := n.Change(ctx, id, intent(id, 1, "channel"),
		task.Accepted{Sending: intent(id, 1, "channel").Sending, Submission: mediagate.Submission{Outcome: &mediagate.Outcome{Succeeded: true, Made: made}}}, task.Mirrored{N: 1, Results: files})
	return err
}

// intent is that of an attempt of a task.
func intent(id string, n int, channel string) task.IntentStored {
	return task.IntentStored{Sending: task.Sending{
		N: n, Channel: channel, Provider: "p", ExternalID: task.Numbered(id, n), SendBefore: time.Now().Add(time.Minute), CallEnds: time.Now().Add(time.Minute),
	}}
}

// run makes an attempt of the task, which the channel polls for.
func (n tenant) run(ctx context.Context, id string, attempt int) error {
	_, err := n.Change(ctx, id, intent(id, attempt, "channel"), task.Accepted{
		Sending: intent(id, attempt, "channel").Sending, Submission: mediagate.Submission{Ref: mediagate.JobRef{JobID: id}}, FirstPollAt: time.Now().Add(-time.Second),
	})
	return err
}

func (n tenant) speak(ctx context.Context, id string) error {
	err := n.OpenSpeech(ctx, mediagate.Speech{ID: id, AccountID: n.account, KeyID: n.key, Model: "m", Hold: 1}, time.Hour)
	if err != nil {
		return err
	}
	_, err = n.EndSpeech(ctx, id, mediagate.SpeechPosted)
	return err
}

// An account whose row somebody keeps has its own writers wait, and nobody else's:
// neither connections nor the turns of its group are used up by them. Once the row
// is free they all get through.
func TestKeptAccount(t *testing.T) {
	t.Parallel()
	for name, capacity := range map[string]int{"no capacity": 0, "a group with a capacity": 1000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.New(t)
			s := openPostgres(t, url+"&lock_timeout=3600000", storage.Config{MaxOpenConns: 12, Writers: limit.New("writers", 6), Patience: time.Hour})
			busy, other := newTenant(t, s, "busy"), newTenant(t, s, "other")
			const ending = 16
			for i := range ending {
				if err := busy.submit(t.Context(), fmt.Sprintf("task_ends_%d", i), "crowd", capacity); err != nil {
					t.Fatal(err)
				}
			}
			db, err := sql.Open("pgx", url)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }()
			if _, err := tx.ExecContext(t.Context(), "SELECT 1 FROM accounts WHERE id = $1 FOR UPDATE", busy.account); err != nil {
				t.Fatal(err)
			}

			var crowd sync.WaitGroup
			must := func(what string, do func(ctx context.Context) error) {
				crowd.Go(func() {
					if err := do(t.Context()); err != nil {
						t.Errorf("%s, once the row is free: %v", what, err)
					}
				})
			}
			const clients = 64
			for i := range clients {
				must("submit", func(ctx context.Context) error {
					return busy.submit(ctx, fmt.Sprintf("task_busy_%d", i), "crowd", capacity)
				})
			}
			for i := range ending {
				must("settle", func(ctx context.Context) error { return busy.settle(ctx, fmt.Sprintf("task_ends_%d", i)) })
				must("speech", func(ctx context.Context) error { return busy.speak(ctx, fmt.Sprintf("speech_%d", i)) })
				must("grant", func(ctx context.Context) error {
					_, _, _, err := busy.Grant(ctx, busy.account, 1, fmt.Sprintf("gift %d", i))
					return err
				})
			}
			eventually(t, "the crowd waits", func(context.Context) error {
				if n := s.Writers(); n < clients+3*ending {
					return fmt.Errorf("%d wait", n)
				}
				return nil
			})

			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			for i := range 10 {
				id := fmt.Sprintf("task_other_%d", i)
				if err := errors.Join(other.submit(ctx, id, "crowd", capacity), other.settle(ctx, id), other.speak(ctx, "speech_of_"+id)); err != nil {
					t.Fatalf("the other account meanwhile: %v", err)
				}
				for account, id := range map[string]string{busy.account: "task_ends_0", other.account: id} {
					if _, err := s.Task(ctx, account, id); err != nil {
						t.Fatalf("a read meanwhile: %v", err)
					}
				}
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			crowd.Wait()
			for id, want := range map[string]mediagate.Account{
				busy.account:  {Available: 1_000_000 - clients, Held: clients, Spent: ending},
				other.account: {Available: 1_000_000 - 10, Spent: 10},
			} {
				got, err := s.Account(t.Context(), id)
				if err != nil || got.Available != want.Available || got.Held != want.Held || got.Spent != want.Spent {
					t.Errorf("afterwards: %+v (%v), want available %v, held %v, spent %v", got, err, want.Available, want.Held, want.Spent)
				}
			}
			if n := s.Writers(); n != 0 {
				t.Errorf("%d still write", n)
			}
		})
	}
}

// A slot is granted to a task whose row somebody has locked: the channel's other
// tasks do not wait for it.
func TestGrantToLockedTask(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	s := openPostgres(t, url+"&lock_timeout=1000", storage.Config{})
	n := newTenant(t, s, "one")
	if err := n.submit(t.Context(), "task_1", "", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Change(t.Context(), "task_1", task.Queued{N: 1, Channels: []string{"channel"}}); err != nil {
		t.Fatal(err)
	}
	epoch, err := s.BeginEpoch(t.Context(), "channel")
	if err != nil {
		t.Fatal(err)
	}
	err = s.Locked(t.Context(), "task_1", func() error {
		got, err := s.GrantSlots(t.Context(), mediagate.Granting{
			Channel: "channel", Epoch: epoch, Slots: mediagate.Slots{Names: []string{"channel"}, Limit: 1}, Most: 1, TakeBack: time.Hour,
		})
		if err == nil && len(got.Tasks) != 1 {
			err = fmt.Errorf("granted: %+v, want one", got)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
