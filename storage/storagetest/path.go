package storagetest

import (
	"context"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
)

// Path is what the durable path asks of a store: what the activities call, and
// what their tests' double of a store must keep as the databases do.
type Path interface {
	Submit(ctx context.Context, n mediagate.NewTask) (taskID string, replayed bool, err error)
	TaskByID(ctx context.Context, id string) (mediagate.Task, error)
	Story(ctx context.Context, taskID string) (mediagate.Story, error)
	RequestCancel(ctx context.Context, accountID, id string) (mediagate.Task, error)
	Park(ctx context.Context, taskID string, reason mediagate.ParkReason) error
	Unpark(ctx context.Context, taskID string) error
	RecordAction(ctx context.Context, a mediagate.Action) (mediagate.Action, error)
	TakeAction(ctx context.Context, id, taker string) (taken bool, err error)

	Judgement(ctx context.Context, taskID string) (mediagate.Judgement, error)
	StoreJudgement(ctx context.Context, taskID string, j mediagate.Judgement) error

	BeginModal(ctx context.Context, taskID string, n int) error
	SubmitModal(ctx context.Context, m mediagate.ModalCall) (command mediagate.Action, replayed bool, err error)
	ExpireModal(ctx context.Context, taskID string) error

	Attempt(ctx context.Context, taskID string, n int) (mediagate.Attempt, error)
	Attempts(ctx context.Context, taskID string) ([]mediagate.Attempt, error)
	Refusals(ctx context.Context, taskID string) (byChannel map[string]int, err error)
	OpenAttempt(ctx context.Context, a mediagate.Attempt, slots mediagate.Slots) (row mediagate.Attempt, opened bool, err error)
	AcceptAttempt(ctx context.Context, taskID string, n int, sub mediagate.Submission, firstPollAt time.Time) (ended bool, err error)
	RejectAttempt(ctx context.Context, taskID string, n int, sendBefore time.Time, f mediagate.Failure, detail string) error
	MarkUnknown(ctx context.Context, taskID string, n int, sendBefore time.Time, detail string) error
	DoubtRefusal(ctx context.Context, taskID string, n int, sendBefore time.Time, f mediagate.Failure, detail string) error
	NoteAbsent(ctx context.Context, taskID string, n int, sendBefore, asked time.Time, gap time.Duration) (first time.Time, proven bool, err error)
	ReopenIntent(ctx context.Context, taskID string, n int, lost, sendBefore time.Time) (reopened bool, err error)
	GiveUpAttempt(ctx context.Context, taskID string, n int, detail string) error
	RecordOutcome(ctx context.Context, taskID string, n int, o mediagate.Outcome) (won bool, err error)
	Producer(ctx context.Context, taskID string) (mediagate.Attempt, error)
	StoreMirrored(ctx context.Context, taskID string, n int, results []mediagate.Result) error

	Parts(ctx context.Context, taskID string, n int) ([]mediagate.Part, error)
	OpenPart(ctx context.Context, p mediagate.Part) (opened bool, err error)
	EndPart(ctx context.Context, p mediagate.Part) error

	Queue(ctx context.Context, taskID string, n int, channels []string) error
	ReleaseSlot(ctx context.Context, taskID string, n int) error
	EndSlots(ctx context.Context) error
	GrantSlots(ctx context.Context, g mediagate.Granting) (mediagate.Granted, error)
	QueuedTasks(ctx context.Context, channel string, limit int) ([]mediagate.Queued, error)
	ChannelLoad(ctx context.Context, name string) (inFlight, queued int, oldest time.Time, err error)

	BeginEpoch(ctx context.Context, channel string) (int64, error)
	ClaimDue(ctx context.Context, channel string, epoch int64, claim string, lease time.Duration, limit int) ([]mediagate.Await, error)
	AwaitStats(ctx context.Context, channel string) (waiting int, nextDue time.Time, err error)
	StorePolls(ctx context.Context, channel, claim string, results []mediagate.PollResult) ([]mediagate.Await, error)
	AdvancePolls(ctx context.Context, channel string, beyond, before time.Time, limit int) (int, error)
	DropAwait(ctx context.Context, taskID string, n int) error
	NoteTrouble(ctx context.Context, taskID string, n int, trouble mediagate.ParkReason) error
	RestoreAwait(ctx context.Context, taskID string, n int, nextPollAt time.Time) error
	HintPoll(ctx context.Context, taskID string) error
	AwaitChannels(ctx context.Context) ([]string, error)
	AwaitAccounts(ctx context.Context, channel string) ([]string, error)
	SameAccount(ctx context.Context, fingerprint string) ([]string, error)
	ProveAccount(ctx context.Context, p mediagate.AccountProof) (fresh bool, err error)

	Settle(ctx context.Context, end mediagate.Settlement) (story mediagate.Story, won bool, err error)
	WebhookTarget(ctx context.Context, taskID string, round int) (mediagate.WebhookTarget, error)
	Deliveries(ctx context.Context, taskID string) ([]mediagate.Delivery, error)
	RecordDelivery(ctx context.Context, d mediagate.Delivery, state mediagate.WebhookState, reason string) error

	UnseenTasks(ctx context.Context, olderThan time.Duration, after string, limit int) (tasks []mediagate.Task, next string, err error)
	OpenTasks(ctx context.Context, checkedBefore time.Time, after mediagate.Look, limit int) ([]mediagate.Look, error)
	OldestOpen(ctx context.Context) (time.Time, error)
	MarkChecked(ctx context.Context, ids []string, seen bool) error
	StaleCancels(ctx context.Context, olderThan time.Duration, after string, limit int) (tasks []mediagate.Task, next string, err error)
	UntakenActions(ctx context.Context, olderThan time.Duration, after mediagate.Action, limit int) ([]mediagate.Action, error)
	PendingWebhooks(ctx context.Context, olderThan, stuckAfter time.Duration, limit int) ([]mediagate.WebhookRound, error)
	StuckWebhooks(ctx context.Context, again time.Duration, limit int) ([]mediagate.WebhookRound, error)
	ClaimOverdue(ctx context.Context, o mediagate.Overdue, limit int) ([]mediagate.Rescue, error)
	UnsettledTasks(ctx context.Context, olderThan time.Duration, after string, limit int) ([]string, error)
	UntoldEnds(ctx context.Context, olderThan time.Duration, after string, limit int) ([]string, error)
	ParkedTasks(ctx context.Context, channel string, reason mediagate.ParkReason, limit int) ([]string, error)
	ParkedFor(ctx context.Context, reason mediagate.ParkReason, after string, limit int) ([]string, error)
	DueSweeps(ctx context.Context, limit int) ([]mediagate.Sweep, error)
	SetSweep(ctx context.Context, due mediagate.Sweep, next time.Time) error
	SeenChannel(ctx context.Context, names []string) error
	ChannelLastSeen(ctx context.Context, name string) (time.Time, error)

	ChannelStates(ctx context.Context) ([]mediagate.ChannelState, error)
	TripBreaker(ctx context.Context, t mediagate.Trip) (state mediagate.ChannelState, tripped bool, err error)
	ClaimProbe(ctx context.Context, channel, probe string, lease time.Duration) (state mediagate.ChannelState, claimed bool, err error)
	CloseBreaker(ctx context.Context, channel, probe string) (state mediagate.ChannelState, closed bool, err error)
	ReopenBreaker(ctx context.Context, channel, probe string, reason mediagate.ParkReason, openFor time.Duration) (state mediagate.ChannelState, reopened bool, err error)
	ReleaseProbe(ctx context.Context, channel, probe string) (state mediagate.ChannelState, released bool, err error)
	EnableChannel(ctx context.Context, channel string, enabled bool) (mediagate.ChannelState, error)
	CountCalls(ctx context.Context, calls []mediagate.ChannelCalls) error
	ChannelRates(ctx context.Context, since time.Time) (map[string]mediagate.ChannelCalls, error)
	ParkedOnRoute(ctx context.Context, provider, after string, limit int) ([]string, error)
}

// pathTests are what holds for any such store. It may know no money: then
// nothing of accounts is looked at.
func pathTests() map[string]map[string]func(*bench) {
	return map[string]map[string]func(*bench){
		"tasks":      taskTests,
		"attempts":   attemptTests,
		"judgements": judgementTests,
		"parts":      partTests,
		"slots":      slotTests,
		"queue":      queueTests,
		"awaits":     awaitTests,
		"breakers":   breakerTests,
		"proofs":     proofTests,
		"settle":     settleTests,
		"webhooks":   webhookTests,
		"reconciler": reconcileTests,
		"rescues":    rescueTests,
		"modal":      modalTests,
	}
}

// RunPath runs that part of the suite; fresh makes an empty store on the clock
// for each test.
func RunPath(t *testing.T, fresh func(t *testing.T, now func() time.Time) Path) {
	t.Helper()
	runGroups(t, pathTests(), func(t *testing.T) *bench {
		t.Helper()
		b := &bench{T: t, clock: newClock()}
		b.Path = fresh(t, b.clock.read)
		return b
	})
}
