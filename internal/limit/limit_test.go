package limit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/mediagate/mediagate/internal/limit"
)

// hold takes units one by one until there are no more, and returns how many it got.
func hold(l *limit.Limit, tenant string) (permits []*limit.Permit) {
	for {
		permit, ok := l.TryAcquire(tenant, 1)
		if !ok {
			return permits
		}
		permits = append(permits, permit)
	}
}

// TestShares checks that a tenant alone may hold half, and each further one half of the rest.
// After all have released and acquired again, each of k tenants has a part of k+1.
func TestShares(t *testing.T) {
	t.Parallel()
	l := limit.New("calls", 120)
	held := map[string][]*limit.Permit{}
	for i, want := range []int{60, 30, 15} {
		tenant := fmt.Sprint(i)
		if held[tenant] = hold(l, tenant); len(held[tenant]) != want {
			t.Errorf("tenant %d has %d, want %d", i, len(held[tenant]), want)
		}
	}
	for range 200 {
		for tenant, permits := range held {
			permits[0].Release()
			held[tenant] = append(permits[1:], hold(l, tenant)...)
		}
	}
	for tenant, permits := range held {
		if n := len(permits); n < 27 || n > 33 {
			t.Errorf("tenant %s has %d of 120, want some 30", tenant, n)
		}
	}
	if f := l.Figures(); f.Name != "calls" || f.Capacity != 120 || f.Held < 85 || f.Held > 95 || f.Waiting != 0 || f.Refused == 0 {
		t.Errorf("figures %+v", f)
	}
}

// TestShareOfLarger checks that a request counts in full on top of what its tenant holds.
func TestShareOfLarger(t *testing.T) {
	t.Parallel()
	l := limit.New("bytes", 10)
	if _, ok := l.TryAcquire("a", 4); !ok {
		t.Fatal("the first was not had")
	}
	if _, ok := l.TryAcquire("a", 2); ok {
		t.Error("it has 6, beside which 4 are free")
	}
	if _, ok := l.TryAcquire("a", 1); !ok {
		t.Error("5 beside 5 were not had")
	}
}

// TestLargest checks that a tenant that holds nothing may acquire up to the whole capacity, and
// that a larger request is refused at once.
func TestLargest(t *testing.T) {
	t.Parallel()
	l := limit.New("bytes", 10)
	if _, ok := l.TryAcquire("a", 11); ok {
		t.Error("more than there is was had")
	}
	if _, err := l.Acquire(t.Context(), "a", 11); !errors.Is(err, limit.ErrTooMuch) {
		t.Errorf("more than there is: %v", err)
	}
	permit, ok := l.TryAcquire("a", 10)
	if !ok {
		t.Fatal("all of it was not had")
	}
	if err := permit.Grow(t.Context(), 1); !errors.Is(err, limit.ErrTooMuch) {
		t.Errorf("growth beyond all: %v", err)
	}
	permit.Release()
	permit.Release()
	if f := l.Figures(); f.Held != 0 || f.Refused != 3 {
		t.Errorf("figures %+v", f)
	}
}

// TestLargeIsNotKeptOut checks that a large request of a tenant that holds nothing gets its
// permit while small requests keep coming.
func TestLargeIsNotKeptOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := limit.New("bytes", 10)
		a, b := hold(l, "a"), hold(l, "b")
		got := make(chan *limit.Permit, 1)
		go func() {
			permit, err := l.Acquire(t.Context(), "large", 9)
			if err != nil {
				t.Error(err)
			}
			got <- permit
		}()
		synctest.Wait()
		for _, permit := range append(a, b...) {
			if _, ok := l.TryAcquire("small", 1); ok {
				t.Error("a small request came first")
			}
			permit.Release()
		}
		(<-got).Release()
	})
}

// TestTurns checks that a new tenant waits for at most one permit of each waiting tenant, however
// many requests wait.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const crowd, each = 5, 20
		l := limit.New("calls", 2)
		first := []*limit.Permit{}
		for i := range 2 {
			permit, err := l.Acquire(t.Context(), fmt.Sprint("first", i), 1)
			if err != nil {
				t.Fatal(err)
			}
			first = append(first, permit)
		}
		var mu sync.Mutex
		var order []string
		queue := func(tenant string) {
			go func() {
				permit, err := l.Acquire(t.Context(), tenant, 1)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, tenant)
				mu.Unlock()
				time.Sleep(time.Second)
				permit.Release()
			}()
			synctest.Wait()
		}
		for i := range crowd {
			for range each {
				queue(fmt.Sprint("crowd", i))
			}
		}
		queue("newcomer")
		if f := l.Figures(); f.Waiting != crowd*each+1 {
			t.Errorf("%d wait", f.Waiting)
		}
		for _, permit := range first {
			permit.Release()
		}
		time.Sleep(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		if at := slices.Index(order, "newcomer"); at < 0 || at > crowd {
			t.Errorf("the newcomer was number %d", at)
		}
		if len(order) != crowd*each+1 {
			t.Errorf("%d of %d had their turn", len(order), crowd*each+1)
		}
		if f := l.Figures(); f.Held != 0 || f.Waiting != 0 || f.Waited == 0 {
			t.Errorf("in the end %+v", f)
		}
	})
}

// TestGrowthGoesFirst checks that of a tenant's requests those are served first that let a
// started one end.
func TestGrowthGoesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := limit.New("bytes", 10)
		other, _ := l.TryAcquire("b", 4)
		begun, _ := l.TryAcquire("a", 3)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			if _, err := l.Acquire(ctx, "a", 2); !errors.Is(err, context.Canceled) {
				t.Errorf("a new one ended with %v", err)
			}
		}()
		synctest.Wait()
		grown := make(chan error, 1)
		go func() { grown <- begun.Grow(t.Context(), 2) }()
		synctest.Wait()
		other.Release()
		synctest.Wait()
		if err := <-grown; err != nil || begun.Held() != 5 {
			t.Errorf("it holds %d: %v", begun.Held(), err)
		}
		cancel()
		synctest.Wait()
		begun.Release()
	})
}

// TestNil checks that a nil limit limits nothing.
func TestNil(t *testing.T) {
	t.Parallel()
	var l *limit.Limit
	var g *limit.Group
	permit, ok := l.TryAcquire("a", 1<<60)
	of, also := g.TryAcquire("k", "a", 1)
	if !ok || !also || permit.Grow(t.Context(), 1) != nil {
		t.Error("nothing had a bound")
	}
	permit.Release()
	of.Release()
}

// TestGroup checks that each key has the whole capacity and that no key is kept.
func TestGroup(t *testing.T) {
	t.Parallel()
	g := limit.NewGroup("calls", 2)
	var permits []*limit.Permit
	for i := range 100 {
		permit, ok := g.TryAcquire(fmt.Sprint(i), "a", 1)
		if !ok {
			t.Fatalf("key %d has no room", i)
		}
		if _, ok := g.TryAcquire(fmt.Sprint(i), "a", 1); ok {
			t.Fatalf("key %d: one has all", i)
		}
		permits = append(permits, permit)
	}
	if f := g.Figures(); f.Held != 100 || f.Refused != 100 {
		t.Errorf("figures %+v", f)
	}
	for _, permit := range permits {
		permit.Release()
		permit.Release()
	}
	if f := g.Figures(); f.Held != 0 || f.Refused != 100 || g.Keys() != 0 {
		t.Errorf("in the end %+v of %d keys", f, g.Keys())
	}
}

// TestPace checks that data at the minimum pace is never late, and that slower data is late
// within PaceOver.
func TestPace(t *testing.T) {
	t.Parallel()
	at := time.Unix(0, 0)
	var p limit.Pace
	for range 100 {
		if at = at.Add(time.Second); at.After(p.By(at)) {
			t.Fatalf("late at %s", at)
		}
		p.Came(limit.LeastPace, at)
	}
	for i := range 12 {
		if at = at.Add(time.Second); at.After(p.By(at)) {
			if i < 9 {
				t.Errorf("late after %d seconds", i)
			}
			return
		}
		p.Came(limit.LeastPace/2, at)
	}
	t.Error("half of the pace was fast enough")
}

// TestPaceThatPauses checks that time in which a sender waits for us does not count.
func TestPaceThatPauses(t *testing.T) {
	t.Parallel()
	at := time.Unix(0, 0)
	p := limit.Pace{Over: time.Second}
	p.Pause(time.Hour) // before anything is to come
	if by := p.By(at); !by.Equal(at.Add(time.Second)) {
		t.Errorf("by %s", by)
	}
	p.Pause(time.Minute)
	if by := p.By(at); !by.Equal(at.Add(time.Minute + time.Second)) {
		t.Errorf("by %s, after a minute's wait", by)
	}
}

// TestProperties runs random sequences in which tenants try, wait, grow, give up and release. It
// checks the rules after each step, and that in the end nothing is held and nothing waits.
func TestProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) { synctest.Test(t, func(*testing.T) { play(r) }) })
}

// asked is a request of a play.
type asked struct {
	tenant string
	n      int64
	permit *limit.Permit
	grows  bool
	cancel context.CancelFunc
	done   chan struct{}
}

func play(r *rapid.T) {
	capacity := rapid.Int64Range(1, 20).Draw(r, "capacity")
	l := limit.New("play", capacity)
	var held, waits []*asked
	settle := func() {
		synctest.Wait()
		still := waits[:0]
		for _, a := range waits {
			select {
			case <-a.done:
				if a.permit != nil && !a.grows {
					held = append(held, a)
				}
				a.grows = false
			default:
				still = append(still, a)
			}
		}
		waits = still
		checkRules(r, l, capacity, held, waits)
	}
	for range rapid.IntRange(1, 60).Draw(r, "steps") {
		tenant := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(r, "tenant")
		n := rapid.Int64Range(1, capacity).Draw(r, "n")
		switch act := rapid.SampledFrom([]string{"try", "acquire", "grow", "cancel", "both", "shrink", "release", "release"}).Draw(r, "act"); {
		case act == "try":
			if permit, ok := l.TryAcquire(tenant, n); ok {
				held = append(held, &asked{tenant: tenant, permit: permit})
			}
		case act == "acquire":
			ctx, cancel := context.WithCancel(context.Background())
			a := &asked{tenant: tenant, n: n, cancel: cancel, done: make(chan struct{})}
			waits = append(waits, a)
			go func() {
				defer close(a.done)
				a.permit, _ = l.Acquire(ctx, tenant, n)
			}()
		case act == "grow" && len(held) > 0:
			a := rapid.SampledFrom(held).Draw(r, "permit")
			if slices.Contains(waits, a) || a.permit.Held()+n > capacity {
				break
			}
			ctx, cancel := context.WithCancel(context.Background())
			a.n, a.grows, a.cancel, a.done = n, true, cancel, make(chan struct{})
			waits = append(waits, a)
			go func() {
				defer close(a.done)
				_ = a.permit.Grow(ctx, n)
			}()
		case act == "shrink" && len(held) > 0:
			if a := rapid.SampledFrom(held).Draw(r, "permit"); !slices.Contains(waits, a) {
				a.permit.Shrink(n)
			}
		case act == "cancel" && len(waits) > 0:
			rapid.SampledFrom(waits).Draw(r, "waiter").cancel()
		case act == "both" && len(waits) > 0: // it gets its turn while it gives up
			rapid.SampledFrom(waits).Draw(r, "waiter").cancel()
			fallthrough
		case act == "release" && len(held) > 0:
			a := rapid.SampledFrom(held).Draw(r, "permit")
			if !slices.Contains(waits, a) {
				a.permit.Release()
				held = slices.DeleteFunc(held, func(o *asked) bool { return o == a })
			}
		}
		settle()
	}
	for len(waits) > 0 {
		waits[0].cancel()
		settle()
	}
	for _, a := range held {
		a.permit.Release()
	}
	if f := l.Figures(); f.Held != 0 || f.Waiting != 0 || l.Tenants() != 0 {
		r.Fatalf("in the end %+v of %d tenants", f, l.Tenants())
	}
}

// checkRules checks that the capacity is never exceeded, that Held is right, and that no request waits
// which could be served, unless one of a tenant that holds nothing waits before it.
func checkRules(r *rapid.T, l *limit.Limit, capacity int64, held, waits []*asked) {
	sums := map[string]int64{}
	var sum int64
	for _, a := range held {
		sums[a.tenant] += a.permit.Held()
		sum += a.permit.Held()
	}
	f := l.Figures()
	if f.Held != sum || sum > capacity || f.Waiting != len(waits) {
		r.Fatalf("%+v, with %d held and %d waiting", f, sum, len(waits))
	}
	free := capacity - sum
	large := slices.ContainsFunc(waits, func(a *asked) bool { return sums[a.tenant] == 0 && a.n > free })
	for _, a := range waits {
		alone := !slices.ContainsFunc(waits, func(o *asked) bool { return o != a && o.tenant == a.tenant })
		if may := sums[a.tenant] == 0 && a.n <= free || sums[a.tenant]+a.n <= free-a.n; may && alone && !large {
			r.Fatalf("%s waits for %d, of which %d are free", a.tenant, a.n, free)
		}
	}
}
