package mediagate

import "time"

// Figures are the counts of what is under way, for metrics: what has ended is in none
// of them, so that their cost goes by what is open. Times are by the database's clock.
type Figures struct {
	At       time.Time
	Open     []OpenTasks
	Stuck    map[string]int // tasks by reason: a ParkReason, or ReasonRunOverdue
	Wakes    []WakeFigures
	Channels []ChannelFigures

	Abandoned Abandoned // of all accounts
	Unpaid    int       // accounts that have more unpaid than they may
}

// StuckReasons are the reasons for which a task can be stuck.
func StuckReasons() []string {
	return []string{
		string(ParkProviderAway), string(ParkCredentials), string(ParkFunds), string(ParkSubmissionUnknown), string(ParkChannelMissing),
		string(ParkJobLost), string(ParkResult), string(ParkStorage), string(ParkInternal), ReasonRunOverdue,
	}
}

// WaitStep says what an open task waits for, as far as its rows tell at a glance.
type WaitStep string

// What tasks wait for.
const (
	WaitStart  WaitStep = "start"  // their first attempt, or the next one
	WaitSubmit WaitStep = "submit" // the answer to a call that makes a job
	WaitLookup WaitStep = "lookup" // what became of such a call
	WaitVendor WaitStep = "vendor" // the end of the job
	WaitModal  WaitStep = "modal"  // the client
	WaitQueue  WaitStep = "queue"  // a vendor's slot
	WaitEnd    WaitStep = "end"    // the copy of the files, and the end
	WaitParked WaitStep = "parked" // better times, or an operator
)

// WaitSteps lists them.
func WaitSteps() []WaitStep {
	return []WaitStep{WaitStart, WaitSubmit, WaitLookup, WaitVendor, WaitModal, WaitQueue, WaitEnd, WaitParked}
}

// OpenTasks are the open tasks of a type and status that wait for the same thing.
type OpenTasks struct {
	Type   Type
	Status Status
	Step   WaitStep
	Count  int
	Since  time.Time // when the wait of the oldest began
}

// WakeFigures are the wakes of a kind.
type WakeFigures struct {
	Kind    WakeKind
	Count   int
	Due     int       // past their time
	Tried   int       // that the scan has tried in vain
	Overdue time.Time // the time of the one that is due longest; zero: none is due
}

// ChannelFigures are the rows under the name of a channel.
type ChannelFigures struct {
	Channel string
	Jobs    int       // that have a slot: they run or may run, or hold a grant
	Queued  int       // tasks that wait for a slot
	Awaited int       // jobs that are polled for
	DueAt   time.Time // when the poll was due that is due longest; zero: no job is polled for
}
