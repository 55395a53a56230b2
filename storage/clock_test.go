package storage_test

import (
	"bytes"
	"crypto/sha256"
	"log/slog"
	"strings"
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
		log   string // empty: it says nothing
		ready bool
	}{
		"right":     {0, "", true},
		"3s ahead":  {3 * time.Second, "3s ahead", true},
		"3s behind": {-3 * time.Second, "3s behind", true},
		"40s ahead": {40 * time.Second, "40s ahead", false},
		"40 behind": {-40 * time.Second, "40s behind", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			local, log := &wrongClock{}, &bytes.Buffer{}
			local.set(test.off)
			s := openPostgres(t, url, storage.Config{LocalNow: local.now, Logger: slog.New(slog.NewTextHandler(log, nil))})

			// The suite's machine may stall between two readings of a clock.
			near := func(what string, got, want time.Duration) {
				if (got - want).Abs() > time.Second {
					t.Errorf("%s: %s, want about %s", what, got, want)
				}
			}
			near("offset", s.ClockOffset(), -test.off)
			near("now", time.Until(s.Now()), 0)
			said := strings.Contains(log.String(), "clock differs")
			if said != (test.log != "") || (said && !strings.Contains(roundSeconds(log.String()), test.log)) {
				t.Errorf("the log says %q, want %q", log, test.log)
			}
			if err := s.CheckClock(t.Context()); (err == nil) != test.ready || (err != nil && !mediagate.Is(err, mediagate.KindUnavailable)) {
				t.Errorf("CheckClock: %v, want ready: %v", err, test.ready)
			}

			account, err := s.CreateAccount(t.Context(), mediagate.Account{Name: name})
			if err != nil {
				t.Fatal(err)
			}
			near("created", time.Until(account.CreatedAt), 0)
			// A key ends for all processes at once.
			for what, end := range map[string]time.Duration{"live": 10 * time.Second, "dead": -10 * time.Second} {
				hash := sha256.Sum256([]byte(name + what))
				if _, err := s.CreateKey(t.Context(), mediagate.Key{AccountID: account.ID, ExpiresAt: time.Now().Add(end)}, hash); err != nil {
					t.Fatal(err)
				}
				for who, store := range map[string]*storage.Store{"it": s, "another": right} {
					if _, _, err := store.KeyByHash(t.Context(), hash); (err == nil) != (what == "live") {
						t.Errorf("%s finds a key that is %s: %v", who, what, err)
					}
				}
			}
		})
	}
}

// roundSeconds takes the fraction from the seconds of a text.
func roundSeconds(text string) string {
	before, after, found := strings.Cut(text, "clock=\"")
	if !found {
		return text
	}
	value, rest, _ := strings.Cut(after, " ")
	d, err := time.ParseDuration(value)
	if err != nil {
		return text
	}
	return before + d.Round(time.Second).String() + " " + rest
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

// A lease that one process took is over for another when the database's time
// has come, however wrong either's clock is (D8).
func TestLeasesGoByTheDatabase(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	slow, fast := &wrongClock{}, &wrongClock{}
	slow.set(-40 * time.Second)
	fast.set(40 * time.Second)
	holder := openPostgres(t, url, storage.Config{LocalNow: slow.now})
	other := openPostgres(t, url, storage.Config{LocalNow: fast.now})
	b := benchOf(t, holder)
	id, epoch := b.accepted(b.newPayer(unit(1)), unit(1)), b.epoch(channelName)
	same(b, "claimed", ids(b.due(epoch, "mine", 10)), []string{id})
	rows, err := other.ClaimDue(t.Context(), channelName, epoch, "theirs", 20*time.Second, 10)
	if err != nil || len(rows) != 0 {
		t.Errorf("a clock that is ahead took %+v, %v", rows, err)
	}
}

// A process whose clock has just stepped neither ends what others hold, nor
// lets go of what it holds itself: nobody has looked at the clock again yet.
func TestClockStepsUnderSpeeches(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	right := openPostgres(t, url, storage.Config{})
	p := benchOf(t, right).newPayer(0)
	speak := func(s *storage.Store, id string, lease time.Duration) {
		t.Helper()
		if err := s.OpenSpeech(t.Context(), mediagate.Speech{ID: id, AccountID: p.account, KeyID: p.key}, lease); err != nil {
			t.Fatal(err)
		}
	}
	renew := func(s *storage.Store, id string, lease time.Duration) {
		t.Helper()
		if open, err := s.RenewSpeech(t.Context(), id, lease); err != nil || !open {
			t.Fatalf("renew %s: %v, %v", id, open, err)
		}
	}
	lapse := func(s *storage.Store) int {
		t.Helper()
		voided, err := s.VoidSpeeches(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		return voided
	}
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
