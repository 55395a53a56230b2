package storage_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/limit"
	"github.com/mediagate/mediagate/storage"
)

// A crowd is many who spend from two accounts at once, end what they hold, and
// change what bounds them, while the clock moves on to other days, and back. After
// that, and in between, the ledger must be whole and no fixed limit exceeded.
var crowdOps = flag.Int("crowd.ops", 12, "what each of a crowd does")

const crowdSize = 64

func TestCrowdFacts(t *testing.T) {
	t.Parallel()
	prove(t, facts{
		"limits hold in a crowd": func(b *bench) {
			seed := rand.Uint64()
			b.Logf("seed %d", seed)
			c := &crowd{bench: b, fixed: b.newPayerKey(unit(60), mediagate.Key{
				Unlimited: true, InFlight: new(6), Caps: mediagate.Caps{Day: new(unit(12)), Week: new(unit(30)), Month: new(unit(40))},
			})}
			b.changeAccount(c.fixed, func(a *mediagate.Account) { a.InFlight = new(8) })
			free := b.newPayer(unit(40))
			c.payers = []payer{c.fixed, b.secondKey(c.fixed), free, b.secondKey(free)}
			b.database() // opened before they look at once
			b.race(crowdSize, func(i int) {
				m := &member{crowd: c, dice: rand.New(rand.NewPCG(seed, uint64(i)))}
				for range *crowdOps {
					m.act()
				}
			})
			b.checkLedger()
			for _, h := range c.holds {
				c.end(h, 1)
			}
			if n := b.count("SELECT COUNT(*) FROM accounts WHERE held <> 0 OR in_flight <> 0") + b.count("SELECT COUNT(*) FROM keys WHERE held <> 0 OR in_flight <> 0"); n > 0 {
				b.Errorf("%d accounts and keys hold something when all has ended", n)
			}
		},
	})
}

type crowd struct {
	*bench
	fixed payer // nobody changes its limits

	mu     sync.Mutex
	payers []payer
	holds  []crowdHold
}

type crowdHold struct {
	id     string
	hold   mediagate.Micros
	speech bool
}

// member is one of them.
type member struct {
	*crowd
	dice *rand.Rand
}

// fine reports an error that is of none of the kinds.
func (c *crowd) fine(what string, err error, kinds ...mediagate.Kind) bool {
	if err != nil && !slices.Contains(kinds, mediagate.KindOf(err)) {
		c.Errorf("%s: %v", what, err)
	}
	return err == nil
}

func (m *member) payer() payer {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.payers[m.dice.IntN(len(m.payers))]
}

func (m *member) act() {
	ctx, p := m.Context(), m.payer()
	h := crowdHold{hold: mediagate.Micros(m.dice.Int64N(int64(unit(3))))}
	switch roll := m.dice.IntN(40); {
	case roll < 14:
		n := m.draft(p, h.hold)
		n.Task.DeadlineAt = n.Task.DeadlineAt.AddDate(1, 0, 0) // no clock moves that far
		h.id = n.Task.ID
		_, _, err := m.Submit(ctx, n)
		m.held(h, m.fine("submit", err, mediagate.KindPayment, mediagate.KindRateLimited, mediagate.KindUnauthenticated))
	case roll < 18:
		n := m.newSpeech(p, h.hold)
		h.id, h.speech = n.ID, true
		m.held(h, m.fine("speak", m.OpenSpeech(ctx, n, 10_000*time.Hour), mediagate.KindPayment, mediagate.KindUnauthenticated))
	case roll < 29:
		m.mu.Lock()
		if len(m.holds) > 0 {
			h = m.holds[m.dice.IntN(len(m.holds))] // perhaps one that another ends now
		}
		m.mu.Unlock()
		if h.id != "" {
			m.end(h, m.dice.Int64N(int64(h.hold)+1))
		}
	case roll < 31:
		_, _, _, err := m.Grant(ctx, p.account, unit(m.dice.Int64N(9)-3)+1, m.draft(p, 0).Task.ID)
		m.fine("grant", err, mediagate.KindConflict)
	case roll < 33:
		secret := mediagate.KeySecret{}
		for i := range secret.Hash {
			secret.Hash[i] = byte(m.dice.Uint32())
		}
		k, err := m.RotateKey(ctx, p.key, secret, 10_000*time.Hour)
		if m.fine("rotate", err, mediagate.KindConflict, mediagate.KindNotFound) {
			m.mu.Lock()
			m.payers = append(m.payers, payer{p.account, k.ID})
			m.mu.Unlock()
		}
	case roll < 36:
		m.limit(p)
	case roll == 36 && p != m.fixed:
		m.fine("delete key", m.DeleteKey(ctx, p.key), mediagate.KindNotFound)
	case roll == 37:
		report, err := m.CheckLedger(ctx)
		if m.fine("check", err) && !report.OK {
			m.Errorf("the ledger is broken:\n%s", strings.Join(report.Problems, "\n"))
		}
	case roll == 38:
		m.lookAtFixed()
	default:
		m.pass(time.Duration(m.dice.IntN(60)-20) * time.Hour)
	}
}

func (m *member) held(h crowdHold, ok bool) {
	if ok {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.holds = append(m.holds, h)
	}
}

func (c *crowd) end(h crowdHold, cost int64) {
	if h.speech {
		_, err := c.EndSpeech(c.Context(), h.id, []mediagate.SpeechState{mediagate.SpeechPosted, mediagate.SpeechVoided}[cost%2])
		c.fine("end speech", err)
		return
	}
	end := []end{made(h.id, mediagate.Micros(cost)), failed(h.id), cancelled(h.id)}[cost%3]
	_, err := c.Change(c.Context(), end.id, end.events...)
	c.fine("end", err, mediagate.KindConflict)
}

// limit changes what bounds a key, or the second account.
func (m *member) limit(p payer) {
	n, some := m.dice.IntN(9), m.dice.IntN(2) == 0
	if p.account == m.fixed.account {
		// Its caps as they are: this counts its tasks in flight anew.
		_, err := m.UpdateKey(m.Context(), m.fixed.key, func(k *mediagate.Key) error {
			k.Name = "another"
			return nil
		})
		m.fine("change key", err, mediagate.KindNotFound)
		return
	}
	_, err := m.UpdateKey(m.Context(), p.key, func(k *mediagate.Key) error {
		k.InFlight, k.Caps = nil, mediagate.Caps{}
		if some {
			k.InFlight, k.Caps.Day = &n, new(unit(int64(3*n)))
		}
		return nil
	})
	m.fine("change key", err, mediagate.KindNotFound, mediagate.KindInvalid)
	_, err = m.UpdateAccount(m.Context(), p.account, func(a *mediagate.Account) error {
		a.InFlight = nil
		if !some {
			a.InFlight = &n
		}
		return nil
	})
	m.fine("change account", err)
}

// lookAtFixed looks at the key whose limits stay.
func (m *member) lookAtFixed() {
	var over int
	err := m.database().Raw(`SELECT COUNT(*) FROM keys k JOIN accounts a ON a.id = k.account_id WHERE k.id = ?
		AND (k.in_flight > k.in_flight_cap OR k.day_used > k.cap_day OR k.week_used > k.cap_week OR k.month_used > k.cap_month
			OR a.in_flight > a.in_flight_cap)`, m.fixed.key).Scan(&over).Error
	if err != nil || over > 0 {
		m.Errorf("a limit is exceeded, or not to be seen: %v", err)
	}
}

// An account whose row somebody keeps has its own writers wait, and nobody else's:
// neither connections nor the turns of its group are used up by them. Once the row
// is free they all get through.
func TestKeptAccount(t *testing.T) {
	t.Parallel()
	for name, capacity := range map[string]int{"no capacity": 0, "a group with a capacity": 1000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMeeting(t, storage.Config{Writers: limit.New("writers", 6), Patience: time.Hour}, "&lock_timeout=3600000")
			busy, other := m.newPayer(1_000_000), m.newPayer(1_000_000)
			submit := func(ctx context.Context, p payer, id string) error {
				n := m.named(p, id)
				n.Group, n.Capacity = "crowd", capacity
				return errOf(m.Submit(ctx, n))
			}
			settle := func(ctx context.Context, id string) error {
				return errOf(m.Change(ctx, id, cancelled(id).events...))
			}
			speak := func(ctx context.Context, p payer, id string) error {
				speech := mediagate.Speech{ID: id, AccountID: p.account, KeyID: p.key, Model: "m", Hold: 1}
				if err := m.OpenSpeech(ctx, speech, time.Hour); err != nil {
					return err
				}
				return errOf(m.EndSpeech(ctx, id, mediagate.SpeechPosted))
			}
			const ending = 4
			for i := range ending {
				m.noError(submit(t.Context(), busy, fmt.Sprintf("task_ends_%d", i)))
			}
			release := m.keep("SELECT 1 FROM accounts WHERE id = $1 FOR UPDATE", busy.account)

			var crowd sync.WaitGroup
			must := func(what string, do func(ctx context.Context) error) {
				crowd.Go(func() {
					if err := do(t.Context()); err != nil {
						t.Errorf("%s, once the row is free: %v", what, err)
					}
				})
			}
			const clients = 32 // twice as many as there are connections
			for i := range clients {
				must("submit", func(ctx context.Context) error { return submit(ctx, busy, fmt.Sprintf("task_busy_%d", i)) })
			}
			for i := range ending {
				must("settle", func(ctx context.Context) error { return settle(ctx, fmt.Sprintf("task_ends_%d", i)) })
				must("speech", func(ctx context.Context) error { return speak(ctx, busy, fmt.Sprintf("speech_%d", i)) })
				must("grant", func(ctx context.Context) error {
					return errOf(m.Grant(ctx, busy.account, 1, fmt.Sprintf("gift %d", i)))
				})
			}
			eventually(t, "the crowd waits", func(context.Context) error {
				if n := m.Writers(); n < clients+3*ending {
					return fmt.Errorf("%d wait", n)
				}
				return nil
			})

			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			for i := range 10 {
				id := fmt.Sprintf("task_other_%d", i)
				if err := errors.Join(submit(ctx, other, id), settle(ctx, id), speak(ctx, other, "speech_of_"+id)); err != nil {
					t.Fatalf("the other account meanwhile: %v", err)
				}
				m.noError(errOf(m.Task(ctx, busy.account, "task_ends_0")))
				m.noError(errOf(m.Task(ctx, other.account, id)))
			}
			release()
			crowd.Wait()
			m.money(busy, 1_000_000-clients, clients, ending)
			m.money(other, 1_000_000-10, 0, 10)
			same(m.bench, "who still write", m.Writers(), 0)
		})
	}
}

// Where somebody holds the lock of a group, such as a process that was stopped, the
// group's own submits fail soon, and those of others succeed.
func TestGroupThatWaits(t *testing.T) {
	t.Parallel()
	// A submit waits a second for its turn, a second for its account, and a second for the group.
	m := newMeeting(t, storage.Config{Patience: time.Second}, "&lock_timeout=1000")
	other := m.newPayer(unit(1))
	submit := func(p payer, id, group string, capacity int) error {
		n := m.named(p, id)
		n.Group, n.Capacity = group, capacity
		return errOf(m.Submit(t.Context(), n))
	}
	release := m.keep("SELECT pg_advisory_xact_lock(hashtextextended('mediagate group crowd', 0))")
	var crowd sync.WaitGroup
	for i := range 32 {
		crowd.Go(func() {
			err := submit(m.payer, fmt.Sprintf("task_crowd_%d", i), "crowd", 100)
			if !mediagate.Is(err, mediagate.KindUnavailable) {
				t.Errorf("while the lock is kept: %v, want unavailable", err)
			}
		})
	}
	for i := range 20 {
		if err := submit(other, fmt.Sprintf("task_alone_%d", i), "alone", i%2*100); err != nil {
			t.Fatalf("another group's submit %d: %v", i, err)
		}
	}
	crowd.Wait()
	release()
	m.noError(submit(m.payer, "task_after", "crowd", 100))
}
