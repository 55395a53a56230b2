package storagetest

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// A storm is a dozen actors that do at once whatever the gateway's parts may
// do, at random and mostly out of turn, with a few accounts, keys and tasks.
// Each actor's choices follow from the storm's seed; how they meet does not,
// so that a seed makes a find likely and not sure.
var (
	stormSeed = flag.Uint64("storm.seed", 0, "seed of the first storm's choices; 0: a new one")
	stormRuns = flag.Uint64("storm.runs", 1, "how many storms, each with the seed after the last one's")
	stormOps  = flag.Int("storm.ops", 60, "what each actor of a storm does before it ends")
)

const (
	stormActors   = 12
	stormAccounts = 3
)

var stormTests = map[string]func(*bench){
	"nothing breaks in a storm of actors": func(b *bench) {
		seed := *stormSeed
		if seed == 0 {
			seed = rand.Uint64N(1<<32) + 1 //nolint:gosec // no secret
		}
		for i := range *stormRuns {
			b.Logf("to repeat these choices: -run '%s' -storm.seed=%d -storm.ops=%d", b.Name(), seed+i, *stormOps)
			newStorm(b, seed+i).run()
			if b.Failed() {
				return
			}
		}
	},
}

// storm is what the actors share: the things that they act on, and what has
// been seen of them, which nothing that comes later may contradict.
type storm struct {
	*bench
	seed uint64

	mu       sync.Mutex
	payers   []payer // first one of each account that stays as it is, then those that may change or go
	speeches []string
	tasks    []*stormTask
	byID     map[string]*stormTask
	replies  map[string]string // of idempotency keys: body and task
	epochs   map[string]int64  // the newest that was begun
	claims   map[string]stormClaim
	once     map[string]bool // what may be won once
	away     atomic.Int64
	done     atomic.Int64
}

// stormTask is what was seen of a task.
type stormTask struct {
	id, account string
	hold        mediagate.Micros

	mu       sync.Mutex
	progress int
	version  int64
	end      *mediagate.Task // how it was first seen ended
	promised bool            // a cancel was answered well
}

type stormClaim struct {
	token string
	epoch int64
	from  time.Time
	until time.Time
}

// actor is one of those who act at once.
type actor struct {
	*storm
	dice    *rand.Rand
	epochs  map[string]int64
	claimed map[string][]mediagate.Await // what its last claim of the channel took
}

func newStorm(b *bench, seed uint64) *storm {
	s := &storm{
		bench: b, seed: seed, byID: map[string]*stormTask{}, replies: map[string]string{}, epochs: map[string]int64{},
		claims: map[string]stormClaim{}, once: map[string]bool{},
	}
	for range stormAccounts {
		s.payers = append(s.payers, b.newPayer(unit(15)))
	}
	for _, p := range s.payers[:stormAccounts] {
		s.payers = append(s.payers, s.secondKey(p))
	}
	return s
}

// secondKey is another key of the payer's account, with a quota.
func (b *bench) secondKey(p payer) payer {
	b.Helper()
	k, err := b.CreateKey(b.Context(), mediagate.Key{AccountID: p.account, Quota: unit(40)}, sha256.Sum256([]byte(p.key)))
	b.noError(err)
	return payer{p.account, k.ID}
}

func (s *storm) run() {
	s.race(stormActors, func(i int) {
		a := &actor{
			storm: s, dice: rand.New(rand.NewPCG(s.seed, uint64(i))), //nolint:gosec // choices, to be repeated
			epochs: map[string]int64{}, claimed: map[string][]mediagate.Await{},
		}
		for range *stormOps {
			if s.Failed() {
				return
			}
			a.act()
			s.done.Add(1)
		}
	})
	s.judge()
	s.Logf("%d operations on %d tasks, %d of which found the database busy", s.done.Load(), len(s.tasks), s.away.Load())
}

// deed is something to do, and how often of all it is done.
type deed struct {
	weight int
	do     func(*actor)
}

var deeds = []deed{
	{10, (*actor).submit},
	{12, (*actor).open},
	{8, (*actor).queueUp},
	{6, (*actor).grantSlots},
	{24, (*actor).answer},
	{14, (*actor).step},
	{6, (*actor).fail},
	{5, (*actor).resolve},
	{5, (*actor).record},
	{5, (*actor).mirror},
	{14, (*actor).poll},
	{2, (*actor).takeOver},
	{4, (*actor).cancel},
	{6, (*actor).settle},
	{3, (*actor).complete},
	{8, (*actor).command},
	{5, (*actor).deliver},
	{4, (*actor).grant},
	{1, (*actor).dropKey},
	{1, (*actor).rotateKey},
	{1, (*actor).give},
	{3, (*actor).limit},
	{3, (*actor).erase},
	{2, (*actor).account},
	{5, (*actor).speak},
	{10, (*actor).read},
	{6, (*actor).tend},
	{1, (*actor).check},
	{5, (*actor).passTime},
}

func (a *actor) act() {
	all := 0
	for _, d := range deeds {
		all += d.weight
	}
	n := a.dice.IntN(all)
	for _, d := range deeds {
		if n -= d.weight; n < 0 {
			d.do(a)
			return
		}
	}
}

// fine reports that the call succeeded. Of the errors, only those of the kinds
// may be: they say that the thing's state forbids it.
func (a *actor) fine(what string, err error, kinds ...mediagate.Kind) bool {
	switch kind := mediagate.KindOf(err); {
	case err == nil:
		return true
	case kind == mediagate.KindUnavailable:
		a.away.Add(1)
	case !slices.Contains(kinds, kind):
		a.Errorf("%s: %v", what, err)
	}
	return false
}

// first reports an error unless this is won for the first time.
func (a *actor) first(what string, args ...any) {
	what = fmt.Sprintf(what, args...)
	a.mu.Lock()
	again := a.once[what]
	a.once[what] = true
	a.mu.Unlock()
	if again {
		a.Errorf("won twice: %s", what)
	}
}

// any chooses a task, mostly one of the newest; nil while there is none.
func (a *actor) any() *stormTask {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := len(a.tasks)
	switch {
	case n == 0:
		return nil
	case a.dice.IntN(4) > 0:
		return a.tasks[max(0, n-1-a.dice.IntN(8))]
	default:
		return a.tasks[a.dice.IntN(n)]
	}
}

// payer chooses one of all.
func (a *actor) payer() payer {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.payers[a.dice.IntN(len(a.payers))]
}

// other chooses one that may change or go.
func (a *actor) other() payer {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.payers[stormAccounts+a.dice.IntN(len(a.payers)-stormAccounts)]
}

func (a *actor) channel() string { return fmt.Sprint("channel-", a.dice.IntN(2)) }

// judge looks at all that the storm has left, ends what has not ended, and
// looks again.
func (s *storm) judge() {
	a := &actor{storm: s, dice: rand.New(rand.NewPCG(s.seed, stormActors))} //nolint:gosec // as above
	for range 2 {
		s.checkLedger()
		s.judgeStatements()
		for what, query := range map[string]string{
			"rows are polled for that no attempt waits for": `SELECT COUNT(*) FROM awaits w JOIN attempts a ON a.task_id = w.task_id AND a.n = w.n
				WHERE a.state NOT IN ('accepted', 'abandoned') OR a.outcome IS NOT NULL`,
			"attempts go on for tasks that have ended": `SELECT COUNT(*) FROM attempts a JOIN tasks t ON t.id = a.task_id
				WHERE t.status IN ('completed', 'failed', 'cancelled') AND a.state NOT IN ('ended', 'rejected', 'abandoned')`,
			"attempts have a slot for ever": "SELECT COUNT(*) FROM attempts WHERE state = 'abandoned' AND slot_until IS NULL",
			"attempts count for nobody, or for another account": `SELECT COUNT(*) FROM attempts a JOIN tasks t ON t.id = a.task_id
				WHERE COALESCE(a.account_id, '') <> t.account_id`,
			"tasks are queued and not in the queue, or there and not queued": `SELECT COUNT(*) FROM tasks t
				WHERE (queued_at IS NOT NULL) <> EXISTS (SELECT 1 FROM queue q WHERE q.task_id = t.id)
					OR queued_at IS NOT NULL AND (parked_at > queued_at OR status NOT IN ('pending', 'processing'))`,
			"rows of the queue have no turn": `SELECT COUNT(*) FROM queue q
				WHERE NOT EXISTS (SELECT 1 FROM turns t WHERE t.channel = q.channel AND t.account_id = q.account_id)`,
			"open tasks have no wake": `SELECT COUNT(*) FROM tasks t
				WHERE status IN ('pending', 'processing') AND NOT EXISTS (SELECT 1 FROM wakes w WHERE w.task_id = t.id AND w.kind = 'run')`,
			"callbacks are due and have no wake, or the other way round": `SELECT COUNT(*) FROM tasks t
				WHERE (webhook_state = 'pending' AND webhook_round > 0) <> EXISTS (SELECT 1 FROM wakes w WHERE w.task_id = t.id AND w.kind = 'round')`,
		} {
			if n := s.count(query); n > 0 {
				s.Errorf("%d %s", n, what)
			}
		}
		s.pass(time.Hour) // every call is over
		for _, t := range s.tasks {
			s.judgeTask(t)
			a.change(t, task.EndDue{}) // of one that is ending, which cannot be failed any more
			a.change(t, failed(t.id).events...)
		}
		for _, id := range s.speeches {
			_, err := s.EndSpeech(s.Context(), id, mediagate.SpeechVoided)
			a.fine("end speech", err)
		}
	}
	if n := s.count("SELECT COUNT(*) FROM accounts WHERE held <> 0 OR in_flight <> 0"); n > 0 {
		s.Errorf("%d accounts hold money or places for nothing", n)
	}
	if n := s.count("SELECT COUNT(*) FROM keys WHERE held <> 0 OR in_flight <> 0"); n > 0 {
		s.Errorf("%d keys hold money or places for nothing", n)
	}
}

// judgeStatements compares balances of the past with the ledger's entries.
func (s *storm) judgeStatements() {
	var moments []time.Time
	for back := range 12 {
		moments = append(moments, s.now().Add(-time.Duration(back*back)*30*time.Second))
	}
	for _, p := range s.payers[:stormAccounts] {
		for _, from := range moments {
			st, err := s.Statement(s.Context(), mediagate.StatementFilter{AccountID: p.account, From: from, Limit: 1})
			s.noError(err)
			bucket := func(name string) mediagate.Micros {
				return mediagate.Micros(s.count(`SELECT CAST(COALESCE(SUM(e.amount), 0) AS bigint) FROM ledger_entries e JOIN ledger_transfers t ON t.id = e.transfer_id
					WHERE e.account_id = ? AND e.bucket = ? AND t.at < ?`, p.account, name, s.stored(from)))
			}
			same(s.bench, "balance of "+p.account, st.Opening, mediagate.Balance{
				Available: bucket("available"), Held: bucket("held"), Spent: bucket("spent"),
			})
		}
	}
}

// stored is a time as a parameter past the store.
func (b *bench) stored(t time.Time) any {
	if b.database().Name() == "sqlite" {
		return t.UnixMicro()
	}
	return t
}

func (s *storm) judgeTask(t *stormTask) {
	row := s.task(t.id)
	switch {
	case t.end != nil && !sameEnd(*t.end, row):
		s.Errorf("%s had ended, and changed:\n%+v\n%+v", t.id, *t.end, row)
	case t.promised && row.Status == mediagate.StatusCompleted:
		s.Errorf("%s completed though its client was promised a cancel", t.id)
	case row.Version < t.version || row.Progress < t.progress:
		s.Errorf("%s went back", t.id)
	}
	ends := s.count("SELECT COUNT(*) FROM ledger_transfers WHERE task_id = ? AND kind IN ('post', 'void')", t.id)
	want := 0
	if row.Status.Terminal() {
		want = 1
	}
	if ends != want {
		s.Errorf("%s is %s, and its money has %d ends", t.id, row.Status, ends)
	}
}
