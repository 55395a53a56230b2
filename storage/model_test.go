package storage_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// These drive the store with random operations beside a model that is
// plain arithmetic. After each operation what the rows have counted is compared;
// the ledger's invariants are proven after each in some runs, and in all of them
// with MEDIAGATE_VERIFY=1: of what is new, and at the end of all that earlier runs
// have left as well.
func TestModelFacts(t *testing.T) {
	t.Parallel()
	prove(t, facts{
		"money follows the model whatever the order": func(b *bench) {
			rapid.Check(b.T, func(t *rapid.T) { newMoneyModel(b, t).run() })
		},
	})
}

// modelHold is a task or a speech.
type modelHold struct {
	id     string
	speech bool
	quota  *modelQuota
	hold   mediagate.Micros
	days   [3]time.Time // when the day, week and month began to which it was counted
	open   bool
	idem   time.Time // when the record of its request ends that has ended

	sent      bool      // the vendor has its job
	abandoned bool      // and may go on with it, though the client has cancelled
	until     time.Time // as long as that counts
}

// modelQuota is what a key shares with those it was rotated into.
type modelQuota struct {
	keys     []string
	deleted  map[string]bool
	quota    *mediagate.Micros // nil: unlimited
	caps     [3]*mediagate.Micros
	inFlight *int
	held     mediagate.Micros
	spent    mediagate.Micros
	starts   [3]time.Time
	used     [3]mediagate.Micros
	tasks    int
}

// moneyModel is what one account should look like.
type moneyModel struct {
	*bench
	t         *rapid.T
	thorough  bool // all invariants after each operation
	account   string
	quotas    []*modelQuota
	inFlight  *int
	unpaid    *mediagate.Micros
	available mediagate.Micros
	holds     []*modelHold
	grants    map[string]mediagate.Micros
	idem      map[string]*modelHold
}

func newMoneyModel(b *bench, t *rapid.T) *moneyModel {
	thorough := rapid.IntRange(0, 19).Draw(t, "thorough") == 0 || os.Getenv("MEDIAGATE_VERIFY") != ""
	m := &moneyModel{bench: b, t: t, thorough: thorough, grants: map[string]mediagate.Micros{}, idem: map[string]*modelHold{}}
	b.setClock(time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC))
	p := b.newPayerKey(0, mediagate.Key{Quota: unit(8)})
	other := must(b.CreateKey(b.Context(), mediagate.Key{AccountID: p.account, Unlimited: true}, m.secret(p.key)))
	m.account = p.account
	m.quotas = []*modelQuota{
		{keys: []string{p.key}, deleted: map[string]bool{}, quota: new(unit(8))},
		{keys: []string{other.ID}, deleted: map[string]bool{}},
	}
	return m
}

// secret is the hash of a key's.
func (m *moneyModel) secret(of string) [32]byte { return [32]byte([]byte(strings.Repeat(of, 2)[:32])) }

func (m *moneyModel) run() {
	m.t.Repeat(map[string]func(*rapid.T){
		"grant": m.grant, "submit": m.submitOne, "submit more": m.submitOne, "speak": m.speakOne, "send": m.sendOne, "send more": m.sendOne, "end": m.endOne, "end more": m.endOne,
		"rotate": m.rotateOne, "limit key": m.limitKey, "limit account": m.limitAccount, "delete key": m.deleteKey, "move clock": m.moveClock,
		"free slots": m.freeSlots, "erase": m.eraseOne,
		"": m.compare,
	})
	m.proveLedger(m.t)
}

func (m *moneyModel) grant(t *rapid.T) {
	amount := unit(rapid.Int64Range(-5, 10).Filter(func(n int64) bool { return n != 0 }).Draw(t, "amount"))
	reference := fmt.Sprint("r", rapid.IntRange(0, 5).Draw(t, "reference"))
	_, available, created, err := m.Grant(m.Context(), m.account, amount, reference)
	former, used := m.grants[reference]
	switch {
	case used && former != amount, !used && m.available+amount < 0:
		if !mediagate.Is(err, mediagate.KindConflict) {
			t.Fatalf("grant of %s: error %v, want a conflict", amount, err)
		}
		return
	case err != nil:
		t.Fatalf("grant of %s: %v", amount, err)
	case created == used:
		t.Fatalf("grant of %s under %s: created %v", amount, reference, created)
	case !used:
		m.available += amount
		m.grants[reference] = amount
	}
	if available != m.available {
		t.Fatalf("available %s, want %s", available, m.available)
	}
}

// calendar is when the day, the week and the month began that now is in.
func calendar(now time.Time) [3]time.Time {
	day := now.UTC().Truncate(24 * time.Hour)
	monday := day
	for monday.Weekday() != time.Monday {
		monday = monday.AddDate(0, 0, -1)
	}
	return [3]time.Time{day, monday, day.AddDate(0, 0, 1-day.Day())}
}

// current is what counts of the shared quota, and since when, in the periods that now is in.
func (p *modelQuota) current(now time.Time) (starts [3]time.Time, used [3]mediagate.Micros) {
	starts = calendar(now)
	for i := range starts {
		if !p.starts[i].Before(starts[i]) {
			starts[i], used[i] = p.starts[i], p.used[i]
		}
	}
	return starts, used
}

var periodNames = [3]string{"day", "week", "month"}

// refusal is the kind of the error that a hold gets, and what it names.
func (m *moneyModel) refusal(p *modelQuota, key string, hold mediagate.Micros, tasks int) (kind mediagate.Kind, text string) {
	_, used := p.current(m.now())
	if p.deleted[key] {
		return mediagate.KindUnauthenticated, "no longer valid"
	}
	if p.quota != nil && p.held+p.spent+hold > *p.quota {
		return mediagate.KindPayment, "quota"
	}
	for i, limit := range p.caps {
		if limit != nil && used[i]+hold > *limit {
			return mediagate.KindPayment, "cap of the " + periodNames[i]
		}
	}
	switch {
	case hold > m.available:
		return mediagate.KindPayment, "balance"
	case tasks > 0 && p.inFlight != nil && p.tasks+m.abandonedOf(p).Jobs >= *p.inFlight:
		return mediagate.KindRateLimited, "the key may have"
	case tasks > 0 && m.inFlight != nil && m.tasksInFlight()+m.abandonedOf(nil).Jobs >= *m.inFlight:
		return mediagate.KindRateLimited, "the account may have"
	case tasks > 0 && m.unpaid != nil && m.abandonedOf(nil).Cost > *m.unpaid:
		return mediagate.KindRateLimited, "unpaid"
	default:
		return mediagate.KindInternal, "" // none
	}
}

func (m *moneyModel) tasksInFlight() (n int) {
	for _, p := range m.quotas {
		n += p.tasks
	}
	return n
}

// abandonedOf are the jobs of cancelled tasks that may still run, of a shared quota or of all.
func (m *moneyModel) abandonedOf(p *modelQuota) (jobs mediagate.Abandoned) {
	for _, h := range m.holds {
		if h.abandoned && (p == nil || h.quota == p) {
			jobs.Jobs++
			jobs.Cost += h.hold
		}
	}
	return jobs
}

// taken notes a hold, or expects the error of one that cannot be.
func (m *moneyModel) taken(t *rapid.T, p *modelQuota, key string, h modelHold, err error) {
	tasks := 1
	if h.speech {
		tasks = 0
	}
	if kind, text := m.refusal(p, key, h.hold, tasks); text != "" {
		if !mediagate.Is(err, kind) || !strings.Contains(err.Error(), text) {
			t.Fatalf("a hold of %s: %v, want %s that says %q", h.hold, err, kind, text)
		}
		return
	}
	if err != nil {
		t.Fatalf("a hold of %s: %v", h.hold, err)
	}
	p.starts, p.used = p.current(m.now())
	for i := range p.used {
		p.used[i] += h.hold
	}
	p.tasks += tasks
	p.held += h.hold
	m.available -= h.hold
	h.quota, h.days, h.open = p, p.starts, true
	m.holds = append(m.holds, &h)
}

// pick chooses a key.
func (m *moneyModel) pick(t *rapid.T) (p *modelQuota, key string) {
	p = rapid.SampledFrom(m.quotas).Draw(t, "quota")
	return p, rapid.SampledFrom(p.keys).Draw(t, "key")
}

func (m *moneyModel) submitOne(t *rapid.T) {
	p, key := m.pick(t)
	n := m.draft(payer{m.account, key}, unit(rapid.Int64Range(0, 4).Draw(t, "hold")))
	n.Task.DeadlineAt = n.Task.DeadlineAt.AddDate(100, 0, 0) // no clock moves that far
	n.IdempotencyKey = rapid.SampledFrom([]string{"", "", "a", "b", "c"}).Draw(t, "idempotency key")
	id, replayed, err := m.Submit(m.Context(), n)
	if first := m.idem[n.IdempotencyKey]; first != nil && (first.open || m.now().Before(first.idem)) {
		if err != nil || !replayed || id != first.id {
			t.Fatalf("replay: %s, %v, %v; want %s", id, replayed, err, first.id)
		}
		return
	}
	m.taken(t, p, key, modelHold{id: id, hold: n.Task.Hold}, err)
	if err != nil {
		return
	}
	if replayed || id != n.Task.ID {
		t.Fatalf("submit of %s: %s, replayed %v", n.Task.ID, id, replayed)
	}
	if n.IdempotencyKey != "" {
		m.idem[n.IdempotencyKey] = m.holds[len(m.holds)-1]
	}
}

func (m *moneyModel) speakOne(t *rapid.T) {
	p, key := m.pick(t)
	n := m.newSpeech(payer{m.account, key}, unit(rapid.Int64Range(0, 3).Draw(t, "hold")))
	err := m.OpenSpeech(m.Context(), n, 1000*time.Hour)
	m.taken(t, p, key, modelHold{id: n.ID, speech: true, hold: n.Hold}, err)
}

// sendOne gives a task's job to the vendor. Mostly the client cancels then.
func (m *moneyModel) sendOne(t *rapid.T) {
	h := m.one(t, func(h *modelHold) bool { return h.open && !h.speech && !h.sent })
	if h == nil {
		return
	}
	h.sent = true
	if _, err := m.Change(m.Context(), h.id, intentOf(h.id, 1, m.now()), task.Accepted{Sending: intentOf(h.id, 1, m.now()).Sending, Submission: mediagate.Submission{Ref: ref(h.id)}, FirstPollAt: m.now()}); err != nil {
		t.Fatalf("send: %v", err)
	}
	if rapid.IntRange(0, 3).Draw(t, "stays") == 0 {
		return
	}
	if _, err := m.Change(m.Context(), h.id, cancelled(h.id).events...); err != nil {
		t.Fatalf("cancel: %v", err)
	}
	m.end(h, 0)
	m.abandon(h)
}

// abandon notes that the job of a cancelled task may run on.
func (m *moneyModel) abandon(h *modelHold) {
	h.abandoned, h.until = true, m.now().Add(mediagate.SlotsLost*plan.Expected)
}

// one chooses a task or a speech; nil where none is like that.
func (m *moneyModel) one(t *rapid.T, like func(*modelHold) bool) *modelHold {
	those := slices.DeleteFunc(slices.Clone(m.holds), func(h *modelHold) bool { return !like(h) })
	if len(those) == 0 {
		return nil
	}
	return rapid.SampledFrom(those).Draw(t, "hold")
}

// freeSlots lets the time be over of jobs that may have run on.
func (m *moneyModel) freeSlots(t *rapid.T) {
	if err := m.ExpireSlots(m.Context()); err != nil {
		t.Fatalf("free slots: %v", err)
	}
	for _, h := range m.holds {
		h.abandoned = h.abandoned && m.now().Before(h.until)
	}
}

// eraseOne erases a task, which frees nothing.
func (m *moneyModel) eraseOne(t *rapid.T) {
	if h := m.one(t, func(h *modelHold) bool { return !h.open && !h.speech }); h != nil {
		if _, err := m.EraseTask(m.Context(), m.account, h.id); err != nil && !mediagate.Is(err, mediagate.KindNotFound) {
			t.Fatalf("erase: %v", err)
		}
	}
}

// endOne completes, in full or in part, fails or cancels a task, or ends a speech.
func (m *moneyModel) endOne(t *rapid.T) {
	h := m.one(t, func(*modelHold) bool { return true })
	if h == nil {
		return
	}
	var won bool
	var cost mediagate.Micros
	if h.speech {
		end := rapid.SampledFrom([]mediagate.SpeechState{mediagate.SpeechPosted, mediagate.SpeechVoided}).Draw(t, "end")
		if end == mediagate.SpeechPosted {
			cost = h.hold
		}
		var err error
		if won, err = m.EndSpeech(m.Context(), h.id, end); err != nil {
			t.Fatalf("end speech: %v", err)
		}
	} else {
		end := rapid.SampledFrom([]end{made(h.id, 0), made(h.id, 0), failed(h.id), cancelled(h.id)}).Draw(t, "end")
		if end.status == mediagate.StatusCompleted && h.hold > 0 {
			cost = mediagate.Micros(rapid.Int64Range(1, int64(h.hold)).Draw(t, "cost"))
			end = made(h.id, cost)
		}
		if h.sent && end.status == mediagate.StatusCompleted {
			end = completed(h.id, cost)
			h.abandoned = false // or its end is seen
		}
		changed, err := m.Change(m.Context(), end.id, end.events...)
		if err != nil && (h.open || !mediagate.Is(err, mediagate.KindConflict)) {
			t.Fatalf("end: %v", err)
		}
		won = changed.Effects.Entry != ""
		if won && changed.State.Status != end.status {
			t.Fatalf("%s is %s, want %s", h.id, changed.State.Status, end.status)
		}
		if won && h.sent && end.status == mediagate.StatusCancelled {
			m.abandon(h)
		}
	}
	if won != h.open {
		t.Fatalf("the end of %+v: won %v", h, won)
	}
	if won {
		m.end(h, cost)
	}
}

func (m *moneyModel) end(h *modelHold, cost mediagate.Micros) {
	h.open, h.idem = false, m.now().Add(24*time.Hour)
	h.quota.held -= h.hold
	h.quota.spent += cost
	m.available += h.hold - cost
	for i, start := range h.days {
		if start.Equal(h.quota.starts[i]) {
			h.quota.used[i] -= h.hold - cost
		}
	}
	if !h.speech {
		h.quota.tasks--
	}
}

// rotateOne makes a new key of the newest of a shared quota.
func (m *moneyModel) rotateOne(t *rapid.T) {
	p := rapid.SampledFrom(m.quotas).Draw(t, "quota")
	last := p.keys[len(p.keys)-1]
	k, err := m.RotateKey(m.Context(), last, mediagate.KeySecret{Hash: m.secret(last + "x")}, 100_000*time.Hour)
	switch {
	case p.deleted[last]:
		if !mediagate.Is(err, mediagate.KindNotFound) {
			t.Fatalf("rotate a deleted key: %v", err)
		}
	case err != nil:
		t.Fatalf("rotate: %v", err)
	default:
		p.keys = append(p.keys, k.ID)
	}
}

// limitKey changes the quota, a cap, or the tasks in flight of a key.
func (m *moneyModel) limitKey(t *rapid.T) {
	p, key := m.pick(t)
	which := rapid.IntRange(-2, 2).Draw(t, "which")
	n := rapid.Int64Range(-1, 9).Draw(t, "limit") // -1: none
	next := *p
	switch which {
	case -2:
		next.inFlight = nil
		if n >= 0 {
			next.inFlight = new(int(n) / 2)
		}
	case -1:
		if p.quota == nil {
			return
		}
		next.quota = new(unit(2 * max(n, 0)))
	default:
		next.caps[which] = nil
		if n >= 0 {
			next.caps[which] = new(unit(n))
		}
	}
	_, err := m.UpdateKey(m.Context(), key, func(k *mediagate.Key) error {
		if next.quota != nil {
			k.Quota = *next.quota
		}
		k.InFlight, k.Caps = next.inFlight, mediagate.Caps{Day: next.caps[0], Week: next.caps[1], Month: next.caps[2]}
		return nil
	})
	_, used := p.current(m.now())
	below := next.quota != nil && *next.quota < p.held+p.spent
	for i, limit := range next.caps {
		below = below || limit != nil && *limit < used[i]
	}
	switch {
	case p.deleted[key]:
		if !mediagate.Is(err, mediagate.KindNotFound) {
			t.Fatalf("change of a deleted key: %v", err)
		}
	case below:
		if !mediagate.Is(err, mediagate.KindInvalid) {
			t.Fatalf("a limit below what is used: %v", err)
		}
	case err != nil:
		t.Fatalf("change of limits: %v", err)
	default:
		*p = next
	}
}

func (m *moneyModel) limitAccount(t *rapid.T) {
	m.inFlight, m.unpaid = nil, nil
	if n := rapid.IntRange(-3, 6).Draw(t, "limit"); n >= 0 {
		m.inFlight = &n
	}
	if n := rapid.Int64Range(-3, 6).Draw(t, "unpaid"); n >= 0 {
		m.unpaid = new(unit(n))
	}
	if _, err := m.UpdateAccount(m.Context(), m.account, func(a *mediagate.Account) error {
		a.InFlight, a.Unpaid = m.inFlight, m.unpaid
		return nil
	}); err != nil {
		t.Fatalf("change of limits: %v", err)
	}
}

func (m *moneyModel) deleteKey(t *rapid.T) {
	if rapid.IntRange(0, 5).Draw(t, "seldom") > 0 {
		return
	}
	p, key := m.pick(t)
	if p.deleted[key] {
		return
	}
	if err := m.DeleteKey(m.Context(), key); err != nil {
		t.Fatalf("delete: %v", err)
	}
	p.deleted[key] = true
}

// moveClock moves it over the ends of days, weeks and months, to just before or
// after one, and back.
func (m *moneyModel) moveClock(t *rapid.T) {
	now := m.now()
	days := calendar(now)
	switch rapid.SampledFrom([]string{"hours", "day", "week", "month", "back"}).Draw(t, "how") {
	case "hours":
		now = now.Add(time.Duration(rapid.IntRange(1, 30).Draw(t, "hours")) * time.Hour)
	case "day":
		now = days[0].AddDate(0, 0, 1).Add(-time.Duration(rapid.IntRange(0, 1).Draw(t, "before")) * time.Microsecond)
	case "week":
		now = days[1].AddDate(0, 0, 7).Add(-time.Duration(rapid.IntRange(0, 1).Draw(t, "before")) * time.Microsecond)
	case "month":
		now = days[2].AddDate(0, 1, 0).Add(-time.Duration(rapid.IntRange(0, 1).Draw(t, "before")) * time.Microsecond)
	case "back":
		now = now.Add(-time.Duration(rapid.IntRange(1, 40*24).Draw(t, "hours")) * time.Hour)
	}
	m.setClock(now)
}

func (m *moneyModel) compare(t *rapid.T) {
	type numbers struct {
		Held, Spent mediagate.Micros
		Used        [3]mediagate.Micros
		InFlight    int
	}
	var held, spent mediagate.Micros
	for _, p := range m.quotas {
		held, spent = held+p.held, spent+p.spent
		var row struct {
			Held, Spent, DayUsed, WeekUsed, MonthUsed mediagate.Micros
			InFlight                                  int
		}
		if err := m.database().Raw("SELECT held, spent, day_used, week_used, month_used, in_flight FROM keys WHERE id = ?", p.keys[0]).Scan(&row).Error; err != nil {
			t.Fatalf("key: %v", err)
		}
		got := numbers{row.Held, row.Spent, [3]mediagate.Micros{row.DayUsed, row.WeekUsed, row.MonthUsed}, row.InFlight}
		if want := (numbers{p.held, p.spent, p.used, p.tasks}); got != want {
			t.Fatalf("key %s is %+v, want %+v", p.keys[0], got, want)
		}
	}
	a, err := m.Account(m.Context(), m.account)
	if err != nil {
		t.Fatalf("account: %v", err)
	}
	got := []mediagate.Micros{a.Available, a.Held, a.Spent}
	if want := []mediagate.Micros{m.available, held, spent}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("available, held, spent are %v, want %v", got, want)
	}
	var tasks int
	if err := m.database().Raw("SELECT in_flight FROM accounts WHERE id = ?", m.account).Scan(&tasks).Error; err != nil || tasks != m.tasksInFlight() {
		t.Fatalf("the account has %d tasks in flight, error %v; want %d", tasks, err, m.tasksInFlight())
	}
	jobs, err := m.Abandoned(m.Context(), m.account)
	if want := m.abandonedOf(nil); err != nil || jobs != want {
		t.Fatalf("abandoned are %+v, error %v; want %+v", jobs, err, want)
	}
	if m.thorough {
		m.proveLedger(t)
	}
}

func (m *moneyModel) proveLedger(t *rapid.T) {
	report, err := m.CheckLedger(m.Context())
	if err != nil || !report.OK {
		t.Fatalf("error %v, problems:\n%s", err, strings.Join(report.Problems, "\n"))
	}
}
