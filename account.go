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
	Available Micros // what can be spent: grants minus holds and charges
	Held      Micros
	Spent     Micros
	AccountLimits

	// EraseInputs erases the prompts and inputs of the account's tasks when they end.
	EraseInputs bool
	// Webhook is the callback address for submits that name none. It may be empty.
	Webhook string
	// Suspended refuses new work: tasks, speeches and uploads. Running tasks go on, and reads work.
	Suspended bool
	CreatedAt time.Time
}

// Suspended returns the error that refuses new work of a suspended account.
func Suspended() *Error {
	return Errorf(KindForbidden, "the account is suspended: running tasks go on, but it takes no new work")
}

// For checks the gateway fetches at most fetchedFirst bytes a day of the files that an account
// links to, plus fetchedPerUnit for each unit of money that the account has available, held or
// spent. The tasks that this money pays for need far less.
const (
	fetchedFirst   = 64 << 20
	fetchedPerUnit = 1 << 30
)

// FetchesPerDay returns how many bytes of linked files may be fetched for checks in a day.
func (a Account) FetchesPerDay() int64 {
	money := min(max(0, a.Available+a.Held+a.Spent), 1<<20*MicrosPerUnit)
	return fetchedFirst + int64(money/(MicrosPerUnit/1000))*(fetchedPerUnit/1000)
}

// AccountLimits bound the work of all keys of an account together. Nil means the installation's
// limit, or none. 0 allows nothing.
type AccountLimits struct {
	Rate          *int    // submits a minute
	InFlight      *int    // open tasks, and jobs of cancelled ones that may still run
	Unpaid        *Micros // what those jobs cost by our prices
	UploadsPerDay *int64  // bytes
}

// Or fills in the limits that are nil.
func (l AccountLimits) Or(defaults AccountLimits) AccountLimits {
	return AccountLimits{
		Rate: cmp.Or(l.Rate, defaults.Rate), InFlight: cmp.Or(l.InFlight, defaults.InFlight),
		Unpaid: cmp.Or(l.Unpaid, defaults.Unpaid), UploadsPerDay: cmp.Or(l.UploadsPerDay, defaults.UploadsPerDay),
	}
}

// Abandoned counts jobs of cancelled tasks that may still run at their vendors.
type Abandoned struct {
	Jobs int
	Cost Micros // of their tasks, by our prices
}

// Scope is a class of calls that a key may make.
type Scope string

// The scopes of keys.
const (
	ScopeGenerate Scope = "generate" // submits, uploads, speech, cancels
	ScopeRead     Scope = "read"     // all reads
	ScopeManage   Scope = "manage"   // keys, webhook secrets, redeliveries, erasure
)

// Scopes lists all scopes. A key for which none are given has all of them.
func Scopes() []Scope { return []Scope{ScopeGenerate, ScopeRead, ScopeManage} }

// Caps bound what a key may spend in a day, a week and a month, in UTC. Weeks begin on Mondays.
// Nil means no bound, zero allows nothing that costs money.
type Caps struct {
	Day   *Micros
	Week  *Micros
	Month *Micros
}

// Key is an API key. Only its holder knows the secret.
type Key struct {
	ID         string
	AccountID  string
	Name       string
	Prefix     string // first characters, for display
	LastFour   string
	Group      string // overrides the account's group
	Unlimited  bool
	Quota      Micros // what it may spend in all; unused if Unlimited
	Held       Micros
	Spent      Micros
	Models     []string // patterns with *; empty: all
	AllowIPs   []string // addresses and CIDRs; empty: any
	ExpiresAt  time.Time
	CreatedAt  time.Time
	LastUsedAt time.Time

	Scopes   []Scope
	Caps     Caps
	CapsUsed Caps // what is held and spent in the present day, week and month; nil where there is no cap
	Rate     *int // submits a minute; nil: no limit, 0: none allowed
	InFlight *int // tasks in flight; nil: no limit, 0: none allowed
	Strict   bool // requests with unknown fields are refused, unless the request says otherwise

	// QuotaID is the id of the key whose row holds what the keys of a rotation share: quota, caps,
	// rate, tasks in flight, held and spent. Before a rotation it is the key's own id.
	QuotaID string
	// SuccessorID is the id of the key that a rotation made from this one.
	SuccessorID string
}

// KeySecret is what is stored of a key's secret. The secret itself is not stored.
type KeySecret struct {
	Hash     [32]byte
	Prefix   string
	LastFour string
}

// Remaining returns what a limited key can still spend.
func (k Key) Remaining() Micros { return k.Quota - k.Held - k.Spent }

// WithLimits returns the key with the limits of another key, as the keys of a rotation share
// them.
func (k Key) WithLimits(of Key) Key {
	k.Unlimited, k.Quota, k.Held, k.Spent = of.Unlimited, of.Quota, of.Held, of.Spent
	k.Caps, k.CapsUsed, k.Rate, k.InFlight = of.Caps, of.CapsUsed, of.Rate, of.InFlight
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

// Transfer is one movement of money in the ledger. Amount is what was granted, held, charged or
// given back.
type Transfer struct {
	ID        string
	Kind      EntryKind
	AccountID string
	KeyID     string
	TaskID    string // or the speech's id
	Amount    Micros
	Reference string
	At        time.Time
}

// LedgerReport is the result of a check of the ledger's invariants.
type LedgerReport struct {
	OK       bool     `json:"ok"`
	Checked  int      `json:"checked"` // accounts, keys, tasks and speeches
	Problems []string `json:"problems"`
}

// WebhookSecret signs an account's webhooks.
type WebhookSecret struct {
	Secret    Secret    // whsec_ + base64 of 32 bytes
	ExpiresAt time.Time // zero for the current one
}

// Seals counts webhook secrets by the encryption key that seals them.
type Seals struct {
	First  int     // sealed by the key that encrypts
	Former int     // sealed by a key that only decrypts
	Lost   int     // sealed by none of the keys
	Errs   []error // for the first lost ones, each naming its row
}

// maxSealErrs bounds Errs. With the wrong keys configured, all secrets are lost.
const maxSealErrs = 20

// Count adds one secret. key is the index of the encryption key that opens it. err is set if no key
// does.
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

// Action is a command for a task. It is stored as a row and then signalled.
type Action struct {
	ID        string
	TaskID    string
	AccountID string // the account that the task must belong to; empty: any
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
	// ActionRedeliver repeats the callback of a task that has ended.
	ActionRedeliver = "redeliver"
	// ActionStray is no command. It records a job that belongs to no attempt of the task, and that its
	// vendor was asked to stop it.
	ActionStray = "stray_job"
)

// RateLimit says how many submits a minute an account or key may make, at least one. After a
// pause that many may come at once. Then one more becomes available every 60 s / PerMinute.
type RateLimit struct {
	Of        string // the id of the account, or QuotaID of a key
	PerMinute int

	// With a PerDay other than 0 this is a limit of bytes: the call takes Bytes, and PerDay bytes
	// become available in a day.
	Bytes  int64
	PerDay int64
}

// RateLeft is what a limit still allows.
type RateLeft struct {
	Submits int
	Next    time.Duration // until one more is available; 0 if all are
}
