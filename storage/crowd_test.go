package storage_test

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
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
