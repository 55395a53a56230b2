package workflows_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/mediagate/mediagate"
)

// TestFuzzWorkflow plays random scenarios. It fails with the smallest one that it finds to break
// a rule, told from its start. The events of a scenario may take a day, and the task has to end
// some hours after the last of them, since no wait is without an end. The test plays a hundred
// scenarios for each kind of vendor, or as many as -rapid.checks says. The seed that it prints
// repeats a scenario, but events of the same moment may still come in another order.
func TestFuzzWorkflow(t *testing.T) {
	t.Parallel()
	for _, vendor := range []string{vendorFindable, vendorBlind, vendorSync} {
		t.Run(vendor, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				s := drawScenario(rt, vendor)
				var p *play
				synctest.Test(t, func(t *testing.T) {
					p = newPlay(t, s)
					p.run()
				})
				if len(p.violations) > 0 {
					rt.Fatalf("%s\n\n%+v\n\n%s", strings.Join(p.violations, "\n"), s, strings.Join(p.trace, "\n"))
				}
			})
		})
	}
}

// scenario is everything that happens to one task: drawn once, then played. Times count from the
// start.
type scenario struct {
	Vendor    string // findable, blind, or sync
	OnUnknown string
	Timeout   time.Duration
	Callback  bool
	Modal     bool // the task may wait for modal parameters
	Slots     bool // each account has one slot
	Second    bool // there is a second account with the vendor
	FindLag   time.Duration
	Tends     time.Duration // how long a pass of the singletons takes; a slow copy of a poller takes five seconds

	Submits   []answer // the vendor's answers, call by call; then it accepts everything
	Jobs      []plan   // what becomes of the vendor's jobs, in the order in which they are made
	Vexed     []window // the answers to polls, lookups and cancels
	Away      []window // the database is away
	Copies    []window // what is wrong with the bucket and the vendor's files
	Absent    []window // channels are gone, or have another account
	Lost      []lapse
	Receiver  []mediagate.DeliveryOutcome
	Happening []event
	Lapses    []regress
}

// regress is a moment at which the database becomes what it was some seconds before.
type regress struct{ At, Back time.Duration }

// answer is how the vendor reacts to one submit, after Delay. Made says that it makes the job,
// whatever it answers.
type answer struct {
	What  string
	Made  bool
	Delay time.Duration
}

// plan is what becomes of one job of the vendor.
type plan struct {
	Takes time.Duration
	End   string // success, failure, or never
	Asks  bool   // it wants modal parameters, and then takes as long again
}

// window is a time in which something is wrong.
type window struct {
	From, To time.Duration
	What     string
}

// lapse is the nth call of a method of the database or of Temporal, which goes wrong: it took
// effect and its answer was lost; or it took no effect; or the process died after it.
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
	"funds": mediagate.KindFunds, "throttled": mediagate.KindThrottled, "capacity": mediagate.KindCapacity,
	"unreached": mediagate.KindUnreached,
}

// happenings are the events. Those "by hand" are signals from Temporal's UI. The others are
// changes of the row, whose signal may be lost.
var happenings = []string{
	"cancel", "cancel unsignalled", "cancel the run", "terminate", "terminate", "reset", "reset", "wedge", "wake",
	"retry", "retry unsignalled", "retry by hand", "fail", "fail unsignalled", "fail by hand", "poll_now by hand",
	"reroute", "reroute by hand", "modal unsignalled",
}

// trials are the methods whose calls may go wrong.
var trials = []string{
	"Change", "Change", "Change", "OpenIntent", "Command", "StorePolls", "ClaimDue", "GrantSlots", "RecordDelivery",
	"StoreWebhookBody", "PutOff",
	"TaskByID", "Attempt", "Wake", "Start", "Replace",
}

// drawScenario draws a scenario for a task of the vendor.
func drawScenario(t *rapid.T, vendor string) scenario {
	s := scenario{
		Vendor:    vendor,
		OnUnknown: rapid.SampledFrom([]string{mediagate.OnUnknownPark, mediagate.OnUnknownFail}).Draw(t, "on_unknown"),
		Timeout: rapid.SampledFrom(
			[]time.Duration{10 * time.Minute, 2 * time.Minute, 30 * time.Second, time.Hour},
		).Draw(t, "timeout"),
		Callback: rapid.Bool().Draw(t, "callback"),
		Modal:    vendor != vendorSync && rapid.Bool().Draw(t, "modal"),
		Slots:    rapid.Bool().Draw(t, "slots"),
		Second:   rapid.Bool().Draw(t, "second account"),
		FindLag:  rapid.SampledFrom([]time.Duration{0, 0, 5 * time.Second, 30 * time.Second}).Draw(t, "lookups lag"),
		Tends: rapid.SampledFrom(
			[]time.Duration{300 * time.Millisecond, 300 * time.Millisecond, 6 * time.Second},
		).Draw(t, "singletons look for"),
	}
	moments := rapid.OneOf(
		seconds(0, 60), seconds(0, 60), seconds(0, 4*3600), seconds(0, 24*3600),
		rapid.Map(seconds(-20, 20), func(d time.Duration) time.Duration { return max(0, s.Timeout+d) }),
		rapid.Map(rapid.IntRange(0, 100), func(n int) time.Duration { return time.Duration(n) * s.Timeout / 50 }),
	)
	windows := func(label string, most int, kinds ...string) []window {
		return slicesOf(t, label, most, func(t *rapid.T) window {
			from := moments.Draw(t, "from")
			length := rapid.OneOf(
				seconds(1, 30), seconds(1, 30), seconds(1, 900), seconds(1, 2*3600), seconds(1, 12*3600),
			).Draw(t, "for")
			return window{from, from + length, rapid.SampledFrom(kinds).Draw(t, "kind")}
		})
	}
	answers := append(
		[]string{"accept", "accept", "accept", "lost", "lost", "late", "hang", "die"}, slices.Sorted(maps.Keys(refusals))...,
	)
	s.Submits = slicesOf(t, "submits", 5, func(t *rapid.T) answer {
		delay := rapid.OneOf(rapid.Just(time.Duration(0)), seconds(0, 5), seconds(0, 25)).Draw(t, "delay")
		return answer{rapid.SampledFrom(answers).Draw(t, "answer"), rapid.Bool().Draw(t, "made"), delay}
	})
	s.Jobs = slicesOf(t, "jobs", 3, func(t *rapid.T) plan {
		takes := rapid.OneOf(seconds(1, 60), seconds(1, 600), seconds(1, 3600)).Draw(t, "takes")
		end := rapid.SampledFrom([]string{"success", "success", "success", "failure", "never"}).Draw(t, "end")
		return plan{takes, end, s.Modal && rapid.IntRange(0, 3).Draw(t, "asks") > 0}
	})
	s.Vexed = windows(
		"vendor is vexed", 3, "transient", "throttled", "credentials", "funds", "not found", "vendor", "panic",
	)
	s.Away = windows("database away", 2, "away")
	s.Copies = windows("copies", 2, "away", "invalid", "too large", "internal", "gone", "transient", "slow")
	s.Absent = windows("channels", 2, "gone", "another account")
	s.Lost = slicesOf(t, "lost answers", 5, func(t *rapid.T) lapse {
		how := rapid.SampledFrom([]string{"after", "after", "before", "dead"}).Draw(t, "how")
		return lapse{rapid.SampledFrom(trials).Draw(t, "method"), rapid.IntRange(1, 8).Draw(t, "nth"), how}
	})
	s.Receiver = slicesOf(t, "receiver", 4, func(t *rapid.T) mediagate.DeliveryOutcome {
		return rapid.SampledFrom(
			[]mediagate.DeliveryOutcome{"delivered", "retry", "abandon", "drop", "error"},
		).Draw(t, "verdict")
	})
	s.Happening = slicesOf(t, "happenings", 6, func(t *rapid.T) event {
		return event{moments.Draw(t, "at"), rapid.SampledFrom(happenings).Draw(t, "what")}
	})
	if s.Lapses = drawLapses(t, s.Timeout); len(s.Lapses) > 0 {
		// An operator who ends the run at the same moment destroys its memory, and that of the
		// call.
		s.Happening = slices.DeleteFunc(s.Happening, func(e event) bool {
			return e.What == "terminate" || e.What == "reset" || e.What == "wedge"
		})
	}
	if s.Modal { // otherwise the call would hardly ever come at the right moment
		s.Happening = append(
			s.Happening, event{rapid.OneOf(seconds(15, 300), seconds(300, 3600)).Draw(t, "the client speaks"), "modal"},
		)
	}
	return s
}

// drawLapses lets a third of the scenarios lose some seconds, once or twice.
func drawLapses(t *rapid.T, timeout time.Duration) (lapses []regress) {
	if rapid.IntRange(0, 2).Draw(t, "lapses") > 0 {
		return nil
	}
	for range rapid.IntRange(1, 2).Draw(t, "how many") {
		at := rapid.OneOf(seconds(1, 90), seconds(1, 90), seconds(1, int(timeout.Seconds()))).Draw(t, "lapse at")
		lapses = append(lapses, regress{at, seconds(1, 30).Draw(t, "back")})
	}
	return lapses
}

func slicesOf[T any](t *rapid.T, label string, most int, draw func(*rapid.T) T) []T {
	return rapid.SliceOfN(rapid.Custom(draw), 0, most).Draw(t, label)
}

// seconds draws a duration of whole seconds.
func seconds(least, most int) *rapid.Generator[time.Duration] {
	return rapid.Map(rapid.IntRange(least, most), func(n int) time.Duration { return time.Duration(n) * time.Second })
}

// calm returns when the last event from outside has come.
func (s scenario) calm() (last time.Duration) {
	for _, w := range slices.Concat(s.Vexed, s.Away, s.Copies, s.Absent) {
		last = max(last, w.To)
	}
	for _, e := range s.Happening {
		last = max(last, e.At)
	}
	for _, l := range s.Lapses {
		last = max(last, l.At)
	}
	return last
}

// during returns what is wrong at that time, or "" if nothing is.
func during(windows []window, at time.Duration) string {
	for _, w := range windows {
		if w.From <= at && at < w.To {
			return w.What
		}
	}
	return ""
}
