package storage_test

import (
	"crypto/sha256"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/pgtest"
)

// wrongClock is a process's own clock that goes wrong.
type wrongClock struct{ off atomic.Int64 }

func (c *wrongClock) set(d time.Duration) { c.off.Store(int64(d)) }

func (c *wrongClock) now() time.Time { return time.Now().Add(time.Duration(c.off.Load())) }

// D10: whatever a process's own clock says, what it stores and judges goes by
// the database's.
func TestDatabaseClockDecides(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	right := openPostgres(t, url, storage.Config{})
	for name, test := range map[string]struct {
		off   time.Duration
		ready bool
	}{
		"right":     {0, true},
		"3s ahead":  {3 * time.Second, true},
		"3s behind": {-3 * time.Second, true},
		"40s ahead": {40 * time.Second, false},
		"40 behind": {-40 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			local := &wrongClock{}
			local.set(test.off)
			s := openPostgres(t, url, storage.Config{LocalNow: local.now})

			// The suite's machine may stall between two readings of a clock.
			near := func(what string, got, want time.Duration) {
				if (got - want).Abs() > time.Second {
					t.Errorf("%s: %s, want about %s", what, got, want)
				}
			}
			near("offset", s.ClockOffset(), -test.off)
			near("now", time.Until(s.Now()), 0)
			if err := s.CheckClock(t.Context()); (err == nil) != test.ready || (err != nil && !mediagate.Is(err, mediagate.KindUnavailable)) {
				t.Errorf("CheckClock: %v, want ready: %v", err, test.ready)
			}

			b := benchOf(t, s)
			defer b.ends()
			account := must(s.CreateAccount(t.Context(), mediagate.Account{Name: name}))
			near("created", time.Until(account.CreatedAt), 0)
			// A key ends for all processes at once.
			for what, end := range map[string]time.Duration{"live": 10 * time.Second, "dead": -10 * time.Second} {
				hash := sha256.Sum256([]byte(name + what))
				must(s.CreateKey(t.Context(), mediagate.Key{AccountID: account.ID, ExpiresAt: time.Now().Add(end)}, hash))
				for who, store := range map[string]*storage.Store{"it": s, "another": right} {
					if _, _, err := store.KeyByHash(t.Context(), hash); (err == nil) != (what == "live") {
						t.Errorf("%s finds a key that is %s: %v", who, what, err)
					}
				}
			}
		})
	}
}

// A clock that goes wrong while the process runs is found by the next Ping,
// as is its mending.
func TestClockGoesWrong(t *testing.T) {
	t.Parallel()
	local := &wrongClock{}
	s := openPostgres(t, pgtest.New(t), storage.Config{LocalNow: local.now})
	for _, off := range []time.Duration{0, 40 * time.Second, -time.Hour, 0} {
		local.set(off)
		if err := s.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.CheckClock(t.Context()); (err == nil) != (off == 0) {
			t.Errorf("off by %s: %v", off, err)
		}
		if left := time.Until(s.Now()); left.Abs() > time.Second {
			t.Errorf("off by %s: now is %s from now", off, left)
		}
	}
}

// A process whose clock has just stepped neither ends what others hold, nor
// lets go of what it holds itself: nobody has looked at the clock again yet.
func TestClockStepsUnderSpeeches(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	right := openPostgres(t, url, storage.Config{})
	b := benchOf(t, right)
	defer b.ends()
	p := b.newPayer(0)
	speak := func(s *storage.Store, id string, lease time.Duration) {
		b.noError(s.OpenSpeech(t.Context(), mediagate.Speech{ID: id, AccountID: p.account, KeyID: p.key}, lease))
	}
	renew := func(s *storage.Store, id string, lease time.Duration) {
		same(b, "open, "+id, must(s.RenewSpeech(t.Context(), id, lease)), true)
	}
	lapse := func(s *storage.Store) int { return must(s.VoidSpeeches(t.Context(), 100)) }
	for name, off := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		local := &wrongClock{}
		stepped := openPostgres(t, url, storage.Config{LocalNow: local.now})
		local.set(off)
		speak(right, "speech_right_"+name, time.Minute)
		speak(stepped, "speech_stepped_"+name, time.Minute)
		speak(stepped, "speech_renewed_"+name, time.Minute)
		renew(stepped, "speech_renewed_"+name, time.Minute)
		for who, s := range map[string]*storage.Store{"it": stepped, "another": right} {
			if n := lapse(s); n > 0 {
				t.Errorf("%s: %s voids %d live speeches", name, who, n)
			}
		}
		// Nor does it keep what nobody renews.
		renew(stepped, "speech_renewed_"+name, time.Millisecond)
		renew(right, "speech_right_"+name, time.Millisecond)
		speak(stepped, "speech_short_"+name, time.Millisecond)
		time.Sleep(2 * time.Millisecond)
		if n := lapse(stepped) + lapse(right); n != 3 {
			t.Errorf("%s: %d of 3 leases are over", name, n)
		}
	}
}
