package workflows_test

import (
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/mediagate/mediagate"
)

// scenario is all that happens to one task: drawn once, then played. Times
// count from the start.
type scenario struct {
	Vendor    string // findable, blind, or sync
	OnUnknown string
	Timeout   time.Duration
	Callback  bool
	Modal     bool // the task may wait for modal parameters
	StartLost bool // the start of the first run never arrived

	Submits []answer // of the vendor, call by call; then it takes what comes
	Jobs    []plan   // of the vendor's jobs, in the order of their making
	FindLag time.Duration

	Vexed   []window // what polls, lookups and cancels are answered with
	Away    []window // the database
	Idle    []window // nobody serves the queues that are named so
	Copies  []window
	Fetches []window
	Absent  []window // of the channel: gone, of another account, disabled, taken out by its breaker, or full
	Slots   bool     // each account has one, which others have while its channel is full
	Spare   bool     // there is another account with the vendor

	Lost      []lapse // answers of the database
	Receiver  []string
	Happening []event
}

// answer is how a vendor takes one submit, after Delay.
type answer struct {
	What  string
	Delay time.Duration
}

// plan is how one job of the vendor goes.
type plan struct {
	Takes time.Duration
	End   string // success, failure, or never
	Asks  bool   // it wants modal parameters, and then takes as long
}

// window is a time in which something is wrong.
type window struct {
	From, To time.Duration
	What     string
}

// lapse is the nth call of a store's method that goes wrong: the statement took
// effect and its answer is lost, or it did not, or the process died after it.
type lapse struct {
	Method string
	Nth    int
	What   string
}

// event is something that comes from outside.
type event struct {
	At   time.Duration
	What string
}

const (
	vendorFindable = "findable"
	vendorBlind    = "blind"
	vendorSync     = "sync"
)

// refusals are answers that prove that there is no job, by name.
var refusals = map[string]mediagate.Kind{
	"invalid": mediagate.KindInvalid, "moderated": mediagate.KindModerated, "credentials": mediagate.KindCredentials,
	"forbidden": mediagate.KindForbidden, "funds": mediagate.KindFunds, "throttled": mediagate.KindThrottled,
	"capacity": mediagate.KindCapacity, "unreached": mediagate.KindUnreached, "not found": mediagate.KindNotFound,
}

// happenings are the events, by name: those that come often more than once.
var happenings = []string{
	"cancel", "cancel unsignalled", "cancel the run", "terminate", "terminate", "terminate",
	"wake", "wake", "upstream 1", "upstream 2", "upstream 7", "upstream nonsense",
	"retry", "retry", "retry unsignalled", "retry twice", "retry by hand", "fail", "fail unsignalled", "fail by hand",
	"poll_now", "poll_now by hand", "slot", "action nonsense", "wedge",
	"modal", "modal", "modal unsignalled", "modal twice",
}

// trials are the methods whose answers may be lost.
var trials = []string{
	"OpenAttempt", "AcceptAttempt", "RejectAttempt", "MarkUnknown", "DoubtRefusal", "NoteAbsent", "ReopenIntent", "GiveUpAttempt", "RecordOutcome",
	"StoreMirrored", "Park", "Unpark", "RecordAction", "TakeAction", "RequestCancel", "Settle", "RecordDelivery", "RestoreAwait",
	"NoteTrouble", "DropAwait", "StorePolls", "ClaimDue", "Story", "TaskByID", "Attempt",
	"BeginModal", "ExpireModal",
	"Queue", "GrantSlots", "Refusals", "TripBreaker", "ClaimProbe", "CloseBreaker", "ReopenBreaker", "ReleaseProbe",
}

// drawScenario makes a scenario of a task of the vendor.
func drawScenario(t *rapid.T, vendor string) scenario {
	s := scenario{
		Vendor:    vendor,
		OnUnknown: rapid.SampledFrom([]string{mediagate.OnUnknownPark, mediagate.OnUnknownFail}).Draw(t, "on_unknown"),
		Timeout:   rapid.SampledFrom([]time.Duration{10 * time.Minute, 2 * time.Minute, 30 * time.Second, time.Hour}).Draw(t, "timeout"),
		Callback:  rapid.Bool().Draw(t, "callback"),
		Modal:     vendor != vendorSync && rapid.Bool().Draw(t, "modal"),
		StartLost: rapid.IntRange(0, 9).Draw(t, "start lost") == 9,
		FindLag:   rapid.SampledFrom([]time.Duration{0, 0, 5 * time.Second, 30 * time.Second}).Draw(t, "lookups lag"),
	}
	moments := rapid.OneOf(
		seconds(0, 60), seconds(0, 60),
		rapid.Map(seconds(-20, 20), func(d time.Duration) time.Duration { return max(0, s.Timeout+d) }),
		rapid.Map(rapid.IntRange(0, 100), func(n int) time.Duration { return time.Duration(n) * s.Timeout / 50 }),
		seconds(0, 4*3600),
	)
	windows := func(label string, most int, kinds ...string) []window {
		one := rapid.Custom(func(t *rapid.T) window {
			from := moments.Draw(t, "from")
			length := rapid.OneOf(seconds(1, 30), seconds(1, 30), seconds(1, 900), seconds(1, 2*3600)).Draw(t, "for")
			return window{from, from + length, rapid.SampledFrom(kinds).Draw(t, "kind")}
		})
		return rapid.SliceOfN(one, 0, most).Draw(t, label)
	}
	answers := append([]string{
		"accept", "accept", "accept", "lost", "lost", "lost before", "late", "hang", "hang with job", "die", "die with job",
	}, sortedKeys(refusals)...)
	s.Submits = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) answer {
		return answer{
			rapid.SampledFrom(answers).Draw(t, "answer"),
			rapid.OneOf(rapid.Just(time.Duration(0)), seconds(0, 5), seconds(0, 25)).Draw(t, "delay"),
		}
	}), 0, 5).Draw(t, "submits")
	s.Jobs = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) plan {
		return plan{
			rapid.OneOf(seconds(1, 60), seconds(1, 600), seconds(1, 3600)).Draw(t, "takes"),
			rapid.SampledFrom([]string{"success", "success", "success", "failure", "never"}).Draw(t, "end"),
			s.Modal && rapid.IntRange(0, 3).Draw(t, "asks") > 0,
		}
	}), 0, 3).Draw(t, "jobs")
	s.Vexed = windows("vendor is vexed", 3, "transient", "throttled", "credentials", "forbidden", "funds", "not found", "not found", "vendor", "panic")
	s.Away = windows("database away", 2, "away")
	s.Idle = windows("queues idle", 2, "call", "call", "mirror", "main", "all")
	s.Copies = windows("bucket", 2, "away", "invalid", "too large", "internal", "slow")
	s.Fetches = windows("fetches", 2, "gone", "transient", "invalid", "slow")
	s.Absent = windows("channels", 2, "gone", "another account", "disabled", "broken", "full", "full")
	s.Slots = rapid.Bool().Draw(t, "slots")
	s.Spare = rapid.Bool().Draw(t, "spare account")
	s.Lost = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) lapse {
		return lapse{
			rapid.SampledFrom(trials).Draw(t, "method"),
			rapid.IntRange(1, 4).Draw(t, "nth"),
			rapid.SampledFrom([]string{"after", "after", "before", "dead", "slow"}).Draw(t, "how"),
		}
	}), 0, 5).Draw(t, "database answers lost")
	s.Receiver = rapid.SliceOfN(rapid.SampledFrom([]string{"delivered", "retry", "abandon", "drop", "error"}), 0, 4).Draw(t, "receiver")
	s.Happening = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) event {
		return event{moments.Draw(t, "at"), rapid.SampledFrom(happenings).Draw(t, "what")}
	}), 0, 6).Draw(t, "happenings")
	if s.Modal { // or it would hardly ever be asked at the right moment
		s.Happening = append(s.Happening, event{
			rapid.OneOf(seconds(15, 300), seconds(300, 3600)).Draw(t, "the client speaks"),
			rapid.SampledFrom([]string{"modal", "modal unsignalled", "modal twice"}).Draw(t, "how"),
		})
	}
	return s
}

// seconds draws a duration of whole seconds.
func seconds(least, most int) *rapid.Generator[time.Duration] {
	return rapid.Map(rapid.IntRange(least, most), func(n int) time.Duration { return time.Duration(n) * time.Second })
}

// calm is when nothing from outside is to come any more.
func (s scenario) calm() time.Duration {
	last := time.Duration(0)
	for _, list := range [][]window{s.Vexed, s.Away, s.Idle, s.Copies, s.Fetches, s.Absent} {
		for _, w := range list {
			last = max(last, w.To)
		}
	}
	for _, e := range s.Happening {
		last = max(last, e.At)
	}
	return last
}

// during is what is wrong at the time; empty when nothing is.
func during(windows []window, at time.Duration) window {
	for _, w := range windows {
		if w.From <= at && at < w.To {
			return w
		}
	}
	return window{}
}

func (s scenario) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "vendor %s, on_unknown %s, timeout %v, callback %v, modal %v, start lost %v, lookups lag %v\n",
		s.Vendor, s.OnUnknown, s.Timeout, s.Callback, s.Modal, s.StartLost, s.FindLag)
	fmt.Fprintf(&b, "submits %v\njobs %v\nvexed %v\ndatabase away %v\nidle queues %v\nbucket %v\nfetches %v\nchannels %v, slots %v, spare %v\nlost answers %v\nreceiver %v\nhappenings %v",
		s.Submits, s.Jobs, s.Vexed, s.Away, s.Idle, s.Copies, s.Fetches, s.Absent, s.Slots, s.Spare, s.Lost, s.Receiver, s.Happening)
	return b.String()
}
