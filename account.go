package mediagate

import (
	"cmp"
	"time"
)

// Account owns keys, tasks and money.
type Account struct {
	ID        string
	Name      string
	Group     string
	Available Micros // what can be spent: grants less holds and charges
	Held      Micros
	Spent     Micros
	AccountLimits

	// EraseInputs drops the prompts and inputs of its tasks when they end.
	EraseInputs bool
	// Webhook is the callback address of submits that name none; empty for none.
	Webhook string
	// Suspended refuses new work: tasks, speeches and uploads. What runs goes on, and reads work.
	Suspended bool
	CreatedAt time.Time
}

// Suspended returns the refusal of new work for a suspended account.
func Suspended() *Error {
	return Errorf(KindForbidden, "the account is suspended: what runs goes on, but it takes no new work")
}

// Of files behind links, an account may have fetchedFirst bytes a day looked at, and
// fetchedPerUnit for each unit of money that it has, holds or has spent: for what its
// tasks may cost there are more than they need.
const (
	fetchedFirst   = 64 << 20
	fetchedPerUnit = 1 << 30
)

// FetchesPerDay is how many bytes of files behind links may be looked at for it in a day.
func (a Account) FetchesPerDay() int64 {
	money := min(max(0, a.Available+a.Held+a.Spent), 1<<20*MicrosPerUnit)
	return fetchedFirst + int64(money/(MicrosPerUnit/1000))*(fetchedPerUnit/1000)
}

// AccountLimits bound what all keys of an account may ask for. Nil: no limit, or the
// installation's. 0: none allowed.
type AccountLimits struct {
	Rate          *int    // submits a minute
	InFlight      *int    // open tasks, and jobs of cancelled ones that may still run
	Unpaid        *Micros // what the latter cost by our prices
	UploadsPerDay *int64  // bytes
}

// Or fills in what has no limit of its own.
func (l AccountLimits) Or(defaults AccountLimits) AccountLimits {
	return AccountLimits{
		Rate: cmp.Or(l.Rate, defaults.Rate), InFlight: cmp.Or(l.InFlight, defaults.InFlight),
		Unpaid: cmp.Or(l.Unpaid, defaults.Unpaid), UploadsPerDay: cmp.Or(l.UploadsPerDay, defaults.UploadsPerDay),
	}
}

// Abandoned are jobs of an account's cancelled tasks that may still run at their vendors.
type Abandoned struct {
	Jobs int
	Cost Micros // of the tasks, by our prices
}

// Scope is a class of calls that a key may make.
type Scope string

// The scopes of keys.
const (
	ScopeGenerate Scope = "generate" // submits, uploads, speech, cancels
	ScopeRead     Scope = "read"     // all that only reads
	ScopeManage   Scope = "manage"   // keys, the webhook secret, deliveries anew, erasure
)

// Scopes are all of them: what a key may do of which nobody said more.
func Scopes() []Scope { return []Scope{ScopeGenerate, ScopeRead, ScopeManage} }

// Caps bound what a key may spend in a day, a week and a month, in UTC; weeks
// begin on Mondays. Nil is no bound, zero allows nothing that costs.
type Caps struct {
	Day   *Micros
	Week  *Micros
	Month *Micros
}

// Key is an API key. Its secret is known only to its holder.
type Key struct {
	ID         string
	AccountID  string
	Name       string
	Prefix     string // first characters, for display
	LastFour   string
	Group      string // overrides the account's when set
	Unlimited  bool
	Quota      Micros // what it may spend in all; meaningless when Unlimited
	Held       Micros
	Spent      Micros
	Models     []string // patterns with *; empty: all
	AllowIPs   []string // addresses and CIDRs; empty: any
	ExpiresAt  time.Time
	CreatedAt  time.Time
	LastUsedAt time.Time

	Scopes   []Scope
	Caps     Caps
	Rate     *int // submits a minute; nil: no limit, 0: none allowed
	InFlight *int // tasks in flight; nil: no limit, 0: none allowed
	Strict   bool // fields that a request may not have are refused, unless the request says otherwise

	// QuotaID is the key whose row has what the keys of a rotation share: quota,
	// caps, rate, tasks in flight, and what is held and spent. It is the key's own
	// id until it is rotated.
	QuotaID string
	// SuccessorID is the key that a rotation has made of this one.
	SuccessorID string
}

// KeySecret is what is stored of a key's secret, which itself is stored nowhere.
type KeySecret struct {
	Hash     [32]byte
	Prefix   string
	LastFour string
}

// Remaining is what a limited key can still spend.
func (k Key) Remaining() Micros { return k.Quota - k.Held - k.Spent }

// WithLimits is the key with the limits of another one, which are those that the
// keys of a rotation share.
func (k Key) WithLimits(of Key) Key {
	k.Unlimited, k.Quota, k.Held, k.Spent = of.Unlimited, of.Quota, of.Held, of.Spent
	k.Caps, k.Rate, k.InFlight = of.Caps, of.Rate, of.InFlight
	return k
}

// EntryKind is the kind of a ledger transfer.
type EntryKind string

// The kinds of transfers. Each hold is resolved once, by a post or a void.
const (
	EntryGrant EntryKind = "grant"
	EntryHold  EntryKind = "hold"
	EntryPost  EntryKind = "post"
	EntryVoid  EntryKind = "void"
)

// Transfer is one movement of money as operators see it. Amount is what
// changed hands: granted, held, charged or given back.
type Transfer struct {
	ID        string
	Kind      EntryKind
	AccountID string
	KeyID     string
	TaskID    string // or the speech's
	Amount    Micros
	Reference string
	At        time.Time
}

// LedgerReport is the verdict of the ledger's invariants.
type LedgerReport struct {
	OK       bool     `json:"ok"`
	Checked  int      `json:"checked"` // accounts, keys, tasks and speeches looked at
	Problems []string `json:"problems"`
}

// WebhookSecret signs an account's webhooks.
type WebhookSecret struct {
	Secret    Secret    // whsec_ + base64 of 32 bytes
	ExpiresAt time.Time // zero for the current one
}

// Seals is by which encryption keys the webhook secrets are sealed.
type Seals struct {
	First  int     // by the one that encrypts
	Former int     // by one of those that only decrypt
	Lost   int     // by none of them
	Errs   []error // of the lost ones, each naming its row; the first of them
}

// maxSealErrs is how many rows are named. Where the wrong keys are configured,
// all of them are lost.
const maxSealErrs = 20

// Count adds a secret, which the key of this number opens, or none.
func (s *Seals) Count(key int, err error) {
	switch {
	case err != nil:
		s.Lost++
		if len(s.Errs) < maxSealErrs {
			s.Errs = append(s.Errs, err)
		}
	case key == 0:
		s.First++
	default:
		s.Former++
	}
}

// Action is a command on a task: a row first, a signal second.
type Action struct {
	ID        string
	TaskID    string
	AccountID string // whose task it has to be; empty: anybody's
	Action    string // one of the Action constants
	Channel   string // for reroute
	By        string
	Reason    string
	At        time.Time
}

// The commands of operators.
const (
	ActionRetry   = "retry"
	ActionReroute = "reroute"
	ActionFail    = "fail"
	ActionPollNow = "poll_now"
	// ActionRedeliver is of the callback of a task that has ended.
	ActionRedeliver = "redeliver"
	// ActionStray is no command: a job was reported that no attempt of the task has, and its
	// vendor was asked to stop it.
	ActionStray = "stray_job"
)

// RateLimit is how many submits a minute somebody may make, one at least. From
// rest so many come through at once; then they come back evenly.
type RateLimit struct {
	Of        string // the id of the account, or of the shared quota of keys
	PerMinute int

	// Where PerDay is not 0 the limit is of bytes: Bytes are to be taken, of so many that
	// come back in a day.
	Bytes  int64
	PerDay int64
}

// RateLeft is what a limit still lets through.
type RateLeft struct {
	Submits int
	Next    time.Duration // until there is one more; 0: all are there
}
