package mediagate

import "time"

// Account owns keys, tasks and money.
type Account struct {
	ID        string
	Name      string
	Group     string
	Available Micros // what can be spent: grants less holds and charges
	Held      Micros
	Spent     Micros
	CreatedAt time.Time
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
}

// Remaining is what a limited key can still spend.
func (k Key) Remaining() Micros { return k.Quota - k.Held - k.Spent }

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
	Secret    string    // whsec_ + base64 of 32 bytes
	ExpiresAt time.Time // zero for the current one
}

// Action is a command on a task: a row first, a signal second.
type Action struct {
	ID      string
	TaskID  string
	Action  string // one of the Action constants
	Channel string // for reroute
	By      string
	Reason  string
	State   string // "pending" or "taken"
	At      time.Time
}

// The commands of operators.
const (
	ActionRetry   = "retry"
	ActionReroute = "reroute"
	ActionFail    = "fail"
	ActionPollNow = "poll_now"
)

// ActionModal says that the client has given modal parameters. It comes of the
// modal call alone: operators have no such command.
const ActionModal = "modal"
