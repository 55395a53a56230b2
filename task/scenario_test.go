package task_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// TestScenarios plays the scenarios in testdata, one task a file. Each directive is an event. The
// answer shows the time since the task was submitted, the task, what else is to be done, and the
// next step. With -rewrite the test writes down what the machine does now: read the diff.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if filepath.Base(file) == "rapid" { // rapid stores failed plays there
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			var p play
			datadriven.RunTest(t, file, p.directive)
		})
	}
}

// noon is when scenarios begin.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// play is one scenario that is being played.
type play struct {
	state  task.State
	backup task.State
	now    time.Time
	route  mediagate.Route
	stop   bool
	sends  map[int]task.Sending // by attempt: its last sending
}

func (p *play) directive(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	switch d.Cmd {
	case "task":
		p.begin(t, d)
		return p.show(task.Effects{})
	case "after":
		return p.pass(t, d)
	case "backup":
		p.backup = p.state
		p.backup.Attempts = slices.Clone(p.state.Attempts)
		return p.show(task.Effects{})
	case "lapse": // the database becomes the backup, unannounced
		p.state = p.backup
		p.state.Attempts = slices.Clone(p.backup.Attempts)
		return p.show(task.Effects{})
	case "source":
		p.changeSource(d)
		return p.show(task.Effects{})
	case "actions":
		return strings.Join(p.state.Actions(p.now), " ")
	case "skips":
		return p.skips()
	case "next-poll":
		return at(p.state.Last().Await.NextPollAt)
	case "continues":
		return strconv.FormatBool(p.state.Continues(p.step(d)))
	}
	event, err := p.event(d)
	if err != nil {
		t.Fatalf("%s: %s: %s", d.Pos, d.Cmd, err)
	}
	effects, err := p.state.Apply(event, p.now)
	switch e := event.(type) {
	case task.IntentStored:
		if err == nil {
			p.sends[e.N] = p.state.Attempt(e.N).Sending
		}
	case task.Reopened:
		if err == nil {
			p.sends[e.N] = p.state.Attempt(e.N).Sending
		}
	}
	if e, ok := errors.AsType[*mediagate.Error](err); ok {
		return fmt.Sprintf("refused: %s", e.Message)
	}
	if err != nil {
		t.Fatalf("%s: %s", d.Pos, err)
	}
	return p.show(effects)
}

// skips lists the commands that do not apply, each with the reason.
func (p *play) skips() string {
	var lines []string
	for _, action := range []string{
		mediagate.ActionFail, mediagate.ActionRetry, mediagate.ActionReroute, mediagate.ActionPollNow,
		mediagate.ActionRedeliver,
	} {
		if why := p.state.SkipReason(action, p.now); why != "" {
			lines = append(lines, action+": "+string(why))
		}
	}
	return strings.Join(lines, "\n")
}

// begin submits a task: a video at kling, five seconds at 0.1 each, with a callback.
func (p *play) begin(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	p.now, p.sends = noon, map[int]task.Sending{}
	p.route = mediagate.Route{Provider: "kling", Operation: "video", Sync: d.HasArg("sync"), Find: d.HasArg("find")}
	p.stop = d.HasArg("stop")
	p.state = task.State{Task: mediagate.Task{
		ID: "task_1", Status: mediagate.StatusPending, Version: 1, DeadlineAt: noon.Add(2 * time.Hour),
		Webhook: mediagate.Webhook{State: mediagate.WebhookPending},
		Plan: mediagate.Plan{
			Routes: []mediagate.Route{{Provider: "kling"}}, Expected: time.Minute, Timeout: 2 * time.Hour,
			ParkTimeout: 24 * time.Hour, ParkRetry: 5 * time.Minute, QueueTimeout: 24 * time.Hour,
			OnUnknown: mediagate.OnUnknownPark,
		},
		Charges: []mediagate.Charge{{Item: "video", Unit: mediagate.UnitSecond, Quantity: 5, UnitPrice: 100_000}},
		Hold:    500_000,
	}}
	if d.HasArg("inputs") {
		p.state.Plan.Inputs = []mediagate.Input{{Field: "image"}}
	}
	if d.HasArg("fail-unknown") {
		p.state.Plan.OnUnknown = mediagate.OnUnknownFail
	}
	if d.HasArg("modal") {
		p.state.Plan.Modal = 30 * time.Minute
	}
	if n := number(d, "images"); n > 0 {
		p.state.Charges = []mediagate.Charge{
			{Item: "image", Unit: mediagate.UnitImage, Quantity: int64(n), UnitPrice: 100_000},
		}
		p.state.Hold = mediagate.Micros(n) * 100_000
	}
	if d.HasArg("free") {
		p.state.Charges[0].UnitPrice, p.state.Hold = 0, 0
	}
	p.beginWithSources(t, d)
}

// beginWithSources lets the task use the first file of each source. A source still runs, or has
// ended.
func (p *play) beginWithSources(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	p.state.SourceTasks = map[string]mediagate.Task{}
	for i, id := range strings.FieldsFunc(text(d, "source"), func(c rune) bool { return c == ',' }) {
		p.state.Sources = append(
			p.state.Sources, mediagate.TaskFile{Field: fmt.Sprintf("image_urls[%d]", i), TaskID: id, N: 1},
		)
		p.state.SourceTasks[id] = mediagate.Task{ID: id, Status: mediagate.StatusProcessing}
		if d.HasArg("source-ended") {
			p.state.SourceTasks[id] = ended(id, mediagate.StatusCompleted, 1, noon)
		}
	}
	if err := p.state.Begin(p.now); err != nil {
		t.Fatalf("%s: %s", d.Pos, err)
	}
}

// changeSource ends a source, or removes it.
func (p *play) changeSource(d *datadriven.TestData) {
	id, files := text(d, "id"), 1
	if text(d, "files") != "" {
		files = number(d, "files")
	}
	p.state.SourceTasks = maps.Clone(p.state.SourceTasks)
	delete(p.state.SourceTasks, id)
	for _, status := range mediagate.Statuses() {
		if d.HasArg(string(status)) {
			p.state.SourceTasks[id] = ended(id, status, files, p.now)
		}
	}
}

func ended(id string, status mediagate.Status, files int, at time.Time) mediagate.Task {
	t := mediagate.Task{ID: id, Status: status, EndedAt: at}
	for i := range files {
		t.Results = append(t.Results, mediagate.Result{Index: i, Key: fmt.Sprintf("results/%s/%d", id, i)})
	}
	return t
}

// pass lets time go by, and then the run ask.
func (p *play) pass(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	passed, err := time.ParseDuration(d.CmdArgs[0].Key)
	if err != nil {
		t.Fatalf("%s: %s", d.Pos, err)
	}
	p.now = p.now.Add(passed)
	effects, err := p.state.Apply(task.Asked{}, p.now)
	if err != nil {
		t.Fatalf("%s: %s", d.Pos, err)
	}
	return p.show(effects)
}

func number(d *datadriven.TestData, key string) int {
	n, _ := strconv.Atoi(text(d, key))
	return n
}

func text(d *datadriven.TestData, key string) string {
	for _, arg := range d.CmdArgs {
		if arg.Key == key && len(arg.Vals) > 0 {
			return strings.Join(arg.Vals, ",")
		}
	}
	return ""
}

func (p *play) step(d *datadriven.TestData) task.Step {
	return task.Step{Kind: task.Kind(text(d, "step")), N: number(d, "n"), Why: task.SleepReason(text(d, "why"))}
}

// event reads an event. It is about the newest attempt, unless n names another.
func (p *play) event(d *datadriven.TestData) (task.Event, error) {
	n := number(d, "n")
	last := 0
	if a := p.state.Last(); a != nil {
		last = a.N
	}
	if n == 0 {
		n = max(last, 1)
	}
	sent, ok := p.sends[n]
	if a := p.state.Attempt(n); !ok && a != nil {
		sent = a.Sending
	}
	if d.HasArg("first-sending") {
		sent.SendBefore = noon.Add(10 * time.Second)
	}
	if channel := text(d, "channel"); channel != "" {
		sent.N, sent.Channel, sent.Provider, sent.Fingerprint = n, channel, "kling", "f"
	}
	if name := text(d, "name"); name != "" {
		sent.ExternalID = name
	}
	failure := mediagate.Failure{
		Code: mediagate.FailureCode(text(d, "code")), Message: "no", Retryable: d.HasArg("retryable"),
	}
	switch d.Cmd {
	case "ask":
		return task.Asked{Seen: p.seen(d, sent)}, nil
	case "ended":
		step := p.step(d)
		kind := text(d, "kind")
		return task.StepEnded{
			Step: step.Kind, N: step.N, Failed: kind != "", Kind: mediagate.ParseKind(kind), Code: text(d, "code"),
			Reason: text(d, "reason"),
		}, nil
	case "settle":
		return task.EndDue{}, nil
	case "inputs":
		j := mediagate.InputCheck{Over: true}
		if failure.Code != "" {
			j.Failure = &failure
		}
		return task.InputsChecked{Check: j}, nil
	case "intent":
		if n = number(d, "n"); n == 0 {
			n = last + 1
		}
		return task.IntentStored{Sending: p.sending(d, n)}, nil
	case "reopen":
		return task.Reopened{
			N: n, Absent: sent.SendBefore, SendBefore: p.now.Add(10 * time.Second), CallEnds: p.now.Add(45 * time.Second),
		}, nil
	case "queue":
		return task.Queued{
			N: last + 1, Channels: []string{"kling-a"}, OnlyFull: d.HasArg("well"),
			Refused: mediagate.ParkReason(text(d, "refused")),
		}, nil
	case "model-retired":
		return task.ModelRetired{N: last + 1}, nil
	case "slot":
		p.state.Granted = p.state.Wait.Why == mediagate.WhySlot // the channel's poller grants it, in the rows of the queue
		return task.Asked{}, nil
	case "accepted":
		s := mediagate.Submission{Ref: mediagate.JobRef{JobID: "job" + strconv.Itoa(n)}}
		if d.HasArg("with-result") {
			s.Outcome = outcome(d)
		}
		if job := text(d, "job"); job != "" {
			s.Ref.JobID = job
		}
		return task.Accepted{Sending: sent, Submission: s, FirstPollAt: p.now.Add(5 * time.Second)}, nil
	case "refused":
		return task.Refused{
			Sending: sent, Failure: failure, Invalid: d.HasArg("invalid"), Elsewhere: d.HasArg("elsewhere"),
		}, nil
	case "unknown":
		return task.SubmitUnknown{Sending: sent, SenderLost: d.HasArg("lost")}, nil
	case "notfound":
		return task.NotFound{N: n, SendBefore: sent.SendBefore, AskedAt: p.now}, nil
	case "mirrored":
		files := 1
		if f := number(d, "files"); f > 0 {
			files = f
		}
		results := make([]mediagate.Result, files)
		for i := range results {
			results[i] = mediagate.Result{Index: i, Key: fmt.Sprint("k", i), Duration: float64(number(d, "seconds"))}
		}
		return task.Mirrored{N: n, Results: results}, nil
	case "stopped":
		return task.StopProven{N: n}, nil
	case "claimed":
		return task.Claimed{N: n, Claim: claim(d)}, nil
	case "progress":
		return task.Progressed{N: n, Claim: claim(d), Percent: number(d, "percent"), NextAt: p.now.Add(10 * time.Second)}, nil
	case "vendor-ended":
		return task.VendorEnded{N: n, Outcome: *outcome(d)}, nil
	case "vendor-waits":
		return task.VendorWaits{N: n, Claim: claim(d), NextAt: p.now.Add(10 * time.Second)}, nil
	case "trouble":
		return task.Troubled{N: n, Claim: claim(d), Reason: mediagate.ParkReason(text(d, "reason"))}, nil
	case "slot-expired":
		return task.SlotExpired{N: n}, nil
	case "cancel":
		return task.CancelRequested{}, nil
	case "fail":
		return task.FailRequested{}, nil
	case "retry":
		return task.RetryRequested{For: p.step(d)}, nil
	case "reroute":
		return task.RerouteRequested{For: p.step(d), Channel: text(d, "channel")}, nil
	case "poll-now":
		return task.PollRequested{}, nil
	case "redeliver":
		return task.RedeliverRequested{}, nil
	case "modal":
		return task.ModalGiven{Input: json.RawMessage(`{"prompt":"x"}`)}, nil
	case "delivered":
		return task.Delivered{
			Round: number(d, "round"), State: mediagate.WebhookState(text(d, "state")), Reason: text(d, "reason"),
		}, nil
	case "breaker-closed":
		return task.BreakerClosed{Reasons: []mediagate.ParkReason{mediagate.ParkReason(text(d, "reason"))}}, nil
	case "restored":
		return task.Restored{At: p.now}, nil
	case "restored-again": // the same announcement once more
		return task.Restored{At: p.state.RestoredAt}, nil
	case "channel-gone":
		return task.ChannelGone{Channel: text(d, "channel")}, nil
	case "unreadable":
		p.state.Unreadable = true
		return task.Asked{}, nil
	case "readable":
		p.state.Unreadable = false
		return task.Asked{}, nil
	}
	return nil, errors.New("no such directive")
}

// sending returns a sending that is made now.
func (p *play) sending(d *datadriven.TestData, n int) task.Sending {
	id, _ := p.state.NextExternalID()
	if name := text(d, "name"); name != "" {
		id = name
	}
	channel := text(d, "channel")
	if channel == "" {
		channel = "kling-a"
	}
	route := p.route
	if d.HasArg("modal-operation") {
		route.Operation = mediagate.OperationModal
	}
	return task.Sending{
		N: n, Channel: channel, Provider: "kling", Fingerprint: "f", Route: route, CanStop: p.stop, ExternalID: id,
		SendBefore: p.now.Add(10 * time.Second), CallEnds: p.now.Add(45 * time.Second), Sends: 1,
	}
}

// seen returns what the run has seen. The argument begun gives the number of an attempt alone,
// the argument sent the last sending of the attempt.
func (p *play) seen(d *datadriven.TestData, sent task.Sending) task.Seen {
	seen := task.Seen{
		Cancelled: d.HasArg("cancelled"), Failed: d.HasArg("to-fail"), Status: mediagate.Status(text(d, "status")),
	}
	if d.HasArg("sent") {
		seen.Sending = sent
	}
	if n := number(d, "begun"); n > 0 {
		seen.N = n
	}
	if job := text(d, "job"); job != "" {
		seen.Ref.JobID = job
	}
	if code := text(d, "code"); code != "" {
		seen.Failure = &mediagate.Failure{Code: mediagate.FailureCode(code)}
	}
	return seen
}

func claim(d *datadriven.TestData) string {
	if c := text(d, "claim"); c != "" {
		return c
	}
	return "c1"
}

func outcome(d *datadriven.TestData) *mediagate.Outcome {
	o := &mediagate.Outcome{
		Succeeded: true, Media: []mediagate.Media{{Ref: "file"}}, Seconds: float64(number(d, "seconds")),
	}
	if code := text(d, "code"); code != "" {
		o = &mediagate.Outcome{Failure: &mediagate.Failure{Code: mediagate.FailureCode(code), Message: "no"}}
	}
	if amount := text(d, "charge"); amount != "" {
		o.VendorCharge = mediagate.ChargedBy(amount, "credits")
	}
	return o
}

// at formats a time as the time since the submit.
func at(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Sub(noon).Round(time.Second).String()
}

func (p *play) show(e task.Effects) string {
	s := &p.state
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", at(p.now), s.Status)
	if s.Progress > 0 {
		fmt.Fprintf(&b, " %d%%", s.Progress)
	}
	if s.Failure != nil {
		fmt.Fprintf(&b, " (%s: %s)", s.Failure.Code, s.Failure.Message)
	}
	if s.Status == mediagate.StatusCompleted {
		fmt.Fprintf(&b, ", cost %s", s.Cost)
	}
	if !s.CancelRequestedAt.IsZero() && !s.Status.Terminal() {
		b.WriteString(", to be cancelled")
	}
	if !s.FailRequestedAt.IsZero() && !s.Status.Terminal() {
		b.WriteString(", to fail")
	}
	if s.Wait.Reason != "" {
		fmt.Fprintf(&b, ", parked at %s: %s", at(s.Wait.Since), s.Wait.Reason)
	}
	if s.Wait.Why == mediagate.WhySource {
		fmt.Fprintf(&b, ", waits since %s for %s", at(s.Wait.Since), strings.Join(s.OpenSources(), ", "))
	}
	if s.Wait.Why == mediagate.WhySlot {
		fmt.Fprintf(&b, ", queued at %s", at(s.Wait.Since))
	}
	if s.TailLost {
		b.WriteString(", may lack attempts")
	}
	if s.Modal.State != "" {
		fmt.Fprintf(&b, ", modal %s", s.Modal.State)
	}
	if s.Status.Terminal() {
		fmt.Fprintf(&b, ", callback %s", s.Webhook.State)
	} else {
		fmt.Fprintf(&b, ", deadline %s", at(s.WaitsUntil(p.now)))
	}
	b.WriteString("\n")
	for _, a := range s.Attempts {
		fmt.Fprintf(&b, "  attempt %d as %s at %s: %s", a.N, a.ExternalID, a.Channel, a.State)
		if a.Ref.JobID != "" {
			fmt.Fprintf(&b, ", %s", a.Ref.JobID)
		}
		if a.Trouble != "" {
			fmt.Fprintf(&b, ", trouble: %s", a.Trouble)
		}
		if a.Outcome != nil {
			fmt.Fprintf(&b, ", succeeded: %t", a.Outcome.Succeeded)
		}
		if a.Await != nil {
			b.WriteString(", polled for")
			if a.Await.Claim != "" {
				fmt.Fprintf(&b, " by %s", a.Await.Claim)
			}
			if a.Await.Again {
				b.WriteString(" again")
			}
		}
		if a.State == mediagate.AttemptAbandoned {
			fmt.Fprintf(&b, ", slot until %s", at(a.SlotUntil))
		}
		b.WriteString("\n")
	}
	var effects []string
	if e.Entry != "" {
		effects = append(effects, fmt.Sprintf("%s %s", e.Entry, s.Cost))
	}
	for _, n := range e.Stop {
		effects = append(effects, fmt.Sprintf("stop the job of attempt %d", n))
	}
	for n, charge := range e.Charged {
		effects = append(effects, fmt.Sprintf("attempt %d was charged %s %s", n, charge.Amount, charge.Unit))
	}
	for _, stray := range e.Stray {
		effects = append(effects, fmt.Sprintf("stop %s at %s", stray.Ref.JobID, stray.Sending.Channel))
	}
	for _, evidence := range e.Evidence {
		effects = append(effects, string(evidence))
	}
	if e.Sweep {
		effects = append(effects, "sweep files")
	}
	if e.Wake {
		effects = append(effects, "wake")
	}
	slices.Sort(effects)
	if len(effects) > 0 {
		fmt.Fprintf(&b, "effects: %s\n", strings.Join(effects, ", "))
	}
	step := s.Advance(p.now)
	fmt.Fprintf(&b, "next: %s", step.Kind)
	if step.N > 0 {
		fmt.Fprintf(&b, " %d", step.N)
	}
	switch {
	case step.Kind == task.Sleep:
		fmt.Fprintf(&b, " until %s: %s", at(step.Until), step.Why)
	case step.Round > 0:
		fmt.Fprintf(&b, ", deliver round %d", step.Round)
	}
	return b.String()
}
