package storagetest

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/mediagate/mediagate"
)

// modelTests drive the store with random operations beside a model that is
// plain arithmetic, and end in the ledger's invariants.
var modelTests = map[string]func(*bench){
	"money follows the model whatever the order": func(b *bench) {
		rapid.Check(b.T, func(t *rapid.T) { newMoneyModel(b, t).run() })
	},
}

type modelTask struct {
	id     string
	hold   mediagate.Micros
	status mediagate.Status
	cost   mediagate.Micros
}

// moneyModel is what one account with a limited and an unlimited key should
// look like.
type moneyModel struct {
	*bench
	t         *rapid.T
	account   string
	keys      [2]string
	quota     mediagate.Micros // of keys[0]
	deleted   [2]bool
	available mediagate.Micros
	held      [2]mediagate.Micros
	spent     [2]mediagate.Micros
	tasks     []modelTask
	owner     map[string]int // task → key
	grants    map[string]mediagate.Micros
	idem      map[string]string
}

func newMoneyModel(b *bench, t *rapid.T) *moneyModel {
	m := &moneyModel{bench: b, t: t, quota: unit(8), owner: map[string]int{}, grants: map[string]mediagate.Micros{}, idem: map[string]string{}}
	p := b.newPayerKey(0, mediagate.Key{Quota: m.quota})
	m.account, m.keys[0] = p.account, p.key
	other, err := b.CreateKey(b.Context(), mediagate.Key{AccountID: p.account, Unlimited: true}, [32]byte([]byte(strings.Repeat(p.key, 2)[:32])))
	b.noError(err)
	m.keys[1] = other.ID
	return m
}

func (m *moneyModel) run() {
	m.t.Repeat(map[string]func(*rapid.T){
		"grant": m.grant, "submit": m.submitOne, "settle": m.settleOne, "delete key": m.deleteKey, "": m.compare,
	})
	report, err := m.CheckLedger(m.Context())
	if err != nil || !report.OK {
		m.t.Fatalf("error %v, problems:\n%s", err, strings.Join(report.Problems, "\n"))
	}
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

func (m *moneyModel) submitOne(t *rapid.T) {
	key := rapid.IntRange(0, 1).Draw(t, "key")
	hold := unit(rapid.Int64Range(0, 4).Draw(t, "hold"))
	n := m.draft(payer{m.account, m.keys[key]}, hold)
	n.IdempotencyKey = rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "idempotency key")
	id, replayed, err := m.Submit(m.Context(), n)
	want, known := m.idem[n.IdempotencyKey]
	short := m.available < hold || (key == 0 && m.held[0]+m.spent[0]+hold > m.quota)
	switch {
	case known:
		if err != nil || !replayed || id != want {
			t.Fatalf("replay: %s, %v, %v; want %s", id, replayed, err, want)
		}
	case m.deleted[key]:
		if !mediagate.Is(err, mediagate.KindUnauthenticated) {
			t.Fatalf("submit with a deleted key: %v", err)
		}
	case short:
		if !mediagate.Is(err, mediagate.KindPayment) {
			t.Fatalf("submit of %s with %s available: %v", hold, m.available, err)
		}
	case err != nil || replayed:
		t.Fatalf("submit: replayed %v, %v", replayed, err)
	default:
		m.available -= hold
		m.held[key] += hold
		m.owner[id] = key
		m.tasks = append(m.tasks, modelTask{id: id, hold: hold, status: mediagate.StatusPending})
		if n.IdempotencyKey != "" {
			m.idem[n.IdempotencyKey] = id
		}
	}
}

func (m *moneyModel) settleOne(t *rapid.T) {
	if len(m.tasks) == 0 {
		return
	}
	task := &m.tasks[rapid.IntRange(0, len(m.tasks)-1).Draw(t, "task")]
	end := rapid.SampledFrom([]mediagate.Settlement{completed(task.id, 0), failed(task.id), cancelled(task.id)}).Draw(t, "end")
	if end.Status == mediagate.StatusCompleted {
		end.Cost = mediagate.Micros(rapid.Int64Range(0, int64(task.hold)).Draw(t, "cost"))
	}
	story, won, err := m.Settle(m.Context(), end)
	if err != nil {
		t.Fatalf("settle: %v", err)
	}
	if won == task.status.Terminal() {
		t.Fatalf("settle of a task that is %s: won %v", task.status, won)
	}
	if won {
		key := m.owner[task.id]
		m.held[key] -= task.hold
		m.spent[key] += end.Cost
		m.available += task.hold - end.Cost
		task.status, task.cost = end.Status, end.Cost
	}
	if story.Status != task.status {
		t.Fatalf("story says %s, want %s", story.Status, task.status)
	}
}

func (m *moneyModel) deleteKey(t *rapid.T) {
	key := rapid.IntRange(0, 20).Draw(t, "key") // seldom one that is
	if key > 1 || m.deleted[key] {
		return
	}
	if err := m.DeleteKey(m.Context(), m.keys[key]); err != nil {
		t.Fatalf("delete: %v", err)
	}
	m.deleted[key] = true
}

func (m *moneyModel) compare(t *rapid.T) {
	a, err := m.Account(m.Context(), m.account)
	if err != nil {
		t.Fatalf("account: %v", err)
	}
	got := []mediagate.Micros{a.Available, a.Held, a.Spent}
	want := []mediagate.Micros{m.available, m.held[0] + m.held[1], m.spent[0] + m.spent[1]}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("available, held, spent are %v, want %v", got, want)
	}
}
