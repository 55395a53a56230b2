package storage_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

func (b *bench) eraseTask(p payer, id string) []string {
	b.Helper()
	uploads := must(b.EraseTask(b.Context(), p.account, id))
	return uploads
}

// secretWord is in all that a client or a vendor wrote, or that names a job.
const secretWord = "zebrafish"

// dump is the rows of all tables as text.
func (b *bench) dump() map[string][]string {
	b.Helper()
	list := "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
	if b.database().Name() == "postgres" {
		list = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
	}
	var tables []string
	b.noError(b.database().Raw(list).Scan(&tables).Error)
	if len(tables) < 15 {
		b.Fatalf("only the tables %v", tables)
	}
	all := map[string][]string{}
	for _, table := range tables {
		var rows []map[string]any
		b.noError(b.database().Raw("SELECT * FROM " + table).Scan(&rows).Error)
		for _, row := range rows {
			for column, value := range row {
				if bytes, ok := value.([]byte); ok {
					value = string(bytes)
				}
				row[column] = value
			}
			all[table] = append(all[table], fmt.Sprintf("%v", row))
		}
	}
	return all
}

// holds names the tables in which the words stand, or else the files.
func (b *bench) holds(words ...string) (tables []string) {
	b.Helper()
	for table, rows := range b.dump() {
		for _, row := range rows {
			for _, word := range words {
				if strings.Contains(row, word) {
					tables = append(tables, table+": "+row)
				}
			}
		}
	}
	if len(tables) > 0 || b.backend.files == "" {
		return sorted(tables)
	}
	files := must(filepath.Glob(b.backend.files))
	if len(files) < 2 {
		b.Fatalf("only the files %v", files)
	}
	for _, name := range files {
		text := must(os.ReadFile(name))
		for _, word := range words {
			if n := bytes.Count(text, []byte(word)); n > 0 {
				tables = append(tables, fmt.Sprintf("%s: %s %d times", filepath.Base(name), word, n))
			}
		}
	}
	return sorted(tables)
}

// richDraft is a task whose every text has the word.
func (b *bench) richDraft(p payer) mediagate.NewTask {
	n := b.draft(p, unit(4))
	n.IdempotencyKey = "once " + n.Task.ID
	n.Task.Params = []byte(`{"prompt":"a zebrafish","image_url":"https://client.example.com/zebrafish.png"}`)
	n.Task.Reference = "order of a zebrafish"
	n.Task.Webhook.URL = "https://receiver.example.com/zebrafish"
	n.Task.Plan.Uploads = map[string]string{"first_frame_image": "uploads/" + p.account + "/01A"}
	n.Task.Plan.Inputs = []mediagate.Input{{Field: "image_url", Covers: &mediagate.Covers{Field: "zebrafish"}}}
	n.Task.Plan.Skipped = []mediagate.SkippedRoute{{Provider: "vidu", Reason: "no zebrafish"}}
	return n
}

// richOutcome has the word in each of its texts.
func richOutcome() mediagate.Outcome {
	return mediagate.Outcome{
		Succeeded: true, VendorText: "made a zebrafish", Seconds: float64(unit(3)), VendorCharge: mediagate.ChargedBy("0.25", "USD"),
		Media: []mediagate.Media{{URL: "https://cdn.example.com/zebrafish.mp4", Name: "zebrafish"}},
		Made: &mediagate.Made{
			Prompt: "zebrafish --v 7", Buttons: []mediagate.Button{{CustomID: "MJ::zebrafish"}},
			Clips: []mediagate.Clip{{ID: "clip-zebrafish", Title: "zebrafish"}}, Voices: []string{"voice-zebrafish"},
		},
	}
}

// rich is a task that has gone through all that writes texts: checked inputs, a
// refusal, a lost call, modal parameters. It is processing, its second attempt
// accepted.
func (b *bench) rich(p payer) string {
	b.Helper()
	n := b.richDraft(p)
	must2(b.Submit(b.Context(), n))
	id := n.Task.ID
	intent := intentOf(id, 1, b.now())
	refusal := mediagate.Failure{Code: mediagate.CodeProviderAway, Message: "a zebrafish", Retryable: true}
	b.change(id, task.InputsChecked{Check: mediagate.InputCheck{Passed: []string{"zebrafish"}, Over: true}}, intent,
		task.Refused{Sending: intent.Sending, Failure: refusal, Detail: "zebrafish"},
		intentOf(id, 2, b.now()),
		task.Accepted{Sending: intentOf(id, 2, b.now()).Sending, Submission: mediagate.Submission{Ref: mediagate.JobRef{JobID: "job-zebrafish", ExternalID: "ours-zebrafish", State: "zebrafish"}}, FirstPollAt: b.now()})
	b.spoil("UPDATE attempts SET document = ? || substr(document, 2) WHERE task_id = ? AND n = 1",
		`{"refusal":{"code":"provider_unavailable","message":"zebrafish"},`, id)
	b.spoil("UPDATE tasks SET document = ? || substr(document, 2) WHERE id = ?",
		`{"modal":{"state":"","n":0,"input":{"prompt":"zebrafish","mask_url":"https://client.example.com/zebrafish"}},`, id)
	return id
}

// richEnd completes such a task.
func richEnd(id string) end {
	return completedBy(id, 2, richOutcome(), []mediagate.Result{{Key: "results/" + id + "/2/0", MimeType: "audio/mpeg"}})
}

// followUp submits a task that works on the clip of another.
func (b *bench) followUp(p payer, source string) (string, error) {
	b.Helper()
	n := b.draft(p, unit(1))
	n.IdempotencyKey = "follow " + n.Task.ID
	n.Task.Plan.Source = &mediagate.Source{
		TaskID: source, VendorID: "clip-zebrafish", Ref: mediagate.JobRef{JobID: "job-zebrafish"}, Clip: &mediagate.Clip{Title: "zebrafish"},
	}
	id, _, err := b.Submit(b.Context(), n)
	return id, err
}

func TestEraseFacts(t *testing.T) {
	t.Parallel()
	provePooled(t, facts{
		"a task is erased whatever its vendor wrote into those that worked on it": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.rich(p)
			b.settle(richEnd(id))
			n := b.draft(p, unit(1))
			n.Task.Plan.Source = &mediagate.Source{TaskID: id, Clip: &mediagate.Clip{Title: "zebrafish", Lyrics: "one\x00two"}}
			follow, _ := must2(b.Submit(b.Context(), n))
			b.settle(failed(follow))
			b.eraseTask(p, id)
			same(b, "left", b.holds(secretWord, `one\u0000two`), nil)
			same(b, "source", b.task(follow).Plan.Source, nil)
			same(b, "routes", b.task(follow).Plan.Routes, plan.Routes)
		},
		"nothing of an erased task is left that somebody wrote": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.rich(p)
			b.settle(richEnd(id))
			b.deliver(mediagate.Delivery{TaskID: id, Round: 1, Attempt: 1, At: b.now(), Status: 503, Error: "zebrafish"}, "")
			must(b.StoreWebhookBody(b.Context(), id, []byte(`{"prompt":"zebrafish"}`)))
			follow := must(b.followUp(p, id))
			b.settle(failed(follow))
			tables := map[string]bool{}
			for _, found := range b.holds(secretWord) {
				table, _, _ := strings.Cut(found, ":")
				tables[table] = true
			}
			same(b, "before", tables, map[string]bool{"tasks": true, "attempts": true, "assets": true, "deliveries": true})

			before := b.task(id)
			same(b, "uploads", b.eraseTask(p, id), []string{"uploads/" + p.account + "/01A"})
			same(b, "after", b.holds(secretWord, "results/"+id), nil)
			t := b.task(id)
			same(b, "what stays", []any{t.AccountID, t.KeyID, t.Model, t.Type, t.Status, t.Hold, t.Cost, t.Charges, t.CreatedAt, t.EndedAt, t.ErasedAt, t.Version},
				[]any{p.account, p.key, before.Model, before.Type, mediagate.StatusCompleted, unit(4), unit(3), before.Charges, before.CreatedAt, before.EndedAt, b.now(), before.Version + 1})
			same(b, "the callback", t.Webhook, mediagate.Webhook{State: mediagate.WebhookDropped, Reason: "task erased", Round: 1})
			same(b, "what the vendor took", b.attempt(id).Outcome, &mediagate.Outcome{Succeeded: true, Seconds: float64(unit(3)), VendorCharge: mediagate.ChargedBy("0.25", "USD")})
			same(b, "the follow-up's plan", b.task(follow).Plan, b.draft(p, 0).Task.Plan)
			b.money(p, unit(7), 0, unit(3))
		},
		"an erased task is unknown": func(b *bench) {
			p := b.newPayer(unit(10))
			id, other := b.rich(p), b.accepted(p, unit(1))
			b.settle(richEnd(id))
			erased, _ := must2(b.Tasks(b.Context(), mediagate.TaskFilter{AccountID: p.account, Reference: "order of a zebrafish"}))
			same(b, "listed", len(erased), 1)
			b.eraseTask(p, id)
			ids := func(f mediagate.TaskFilter) (ids []string) {
				f.AccountID = p.account
				tasks, more := must2(b.Tasks(b.Context(), f))
				same(b, "more", more, false)
				for _, t := range tasks {
					ids = append(ids, t.ID)
				}
				return ids
			}
			same(b, "the list", ids(mediagate.TaskFilter{Limit: 1}), []string{other})
			same(b, "by status", ids(mediagate.TaskFilter{Status: mediagate.StatusCompleted}), nil)
			same(b, "by reference", ids(mediagate.TaskFilter{Reference: "order of a zebrafish"}), nil)
			versions := must(b.Versions(b.Context(), []string{id, other}))
			same(b, "versions", versions, map[string]int64{other: 2})
			b.kind(errOf(b.Tasks(b.Context(), mediagate.TaskFilter{AccountID: p.account, After: id})), mediagate.KindInvalid)
			missing := func(what string, err error) {
				b.Helper()
				if !mediagate.Is(err, mediagate.KindNotFound) {
					b.Errorf("%s: %v", what, err)
				}
			}
			_, err := b.Task(b.Context(), p.account, id)
			missing("task", err)
			_, err = b.RequestCancel(b.Context(), p.account, id)
			missing("cancel", err)
			_, err = b.SubmitModal(b.Context(), mediagate.ModalCall{AccountID: p.account, TaskID: id, Input: []byte(`{}`), IdempotencyKey: "m"})
			missing("modal", err)
			_, err = b.EraseTask(b.Context(), p.account, id)
			missing("erased again", err)
			_, err = b.Producer(b.Context(), id)
			missing("producer", err)
			_, err = b.WebhookTarget(b.Context(), id, 1)
			missing("callback", err)
			for kind, vendorID := range map[mediagate.MadeKind]string{mediagate.MadeClip: "clip-zebrafish", mediagate.MadeVoice: "voice-zebrafish"} {
				_, err := b.MadeBy(b.Context(), p.account, kind, vendorID)
				missing(vendorID, err)
			}
			_, err = b.followUp(p, id)
			missing("source", err)
			same(b, "no trace of it", b.count("SELECT COUNT(*) FROM idempotency WHERE key LIKE 'follow%'"), 0)

			n := b.richDraft(p)
			got, found := must2(b.Replay(b.Context(), p.account, "once "+id, n.Path, n.BodySHA256))
			same(b, "the acknowledgement stays for as long as it would", []any{got, found}, []any{id, true})
		},
		"nothing is left of many tasks, of any length": func(b *bench) {
			if b.backend.files == "" {
				b.Skip("the server keeps the files")
			}
			p := b.newPayer(unit(1000))
			var ids []string
			for i := range 120 {
				n := b.richDraft(p)
				n.Task.Params = fmt.Appendf(nil, `{"prompt":%q}`, strings.Repeat("a zebrafish ", 1+i*i%700))
				must2(b.Submit(b.Context(), n))
				ids = append(ids, n.Task.ID)
			}
			for i := range ids { // in no order of theirs, so that pages are split, joined and filled again
				id := ids[i*37%len(ids)]
				b.settle(cancelled(id))
				b.eraseTask(p, id)
			}
			same(b, "left", b.holds(secretWord), nil)
		},
		"what is erased while somebody reads goes with a later write": func(b *bench) {
			if b.backend.files == "" {
				b.Skip("the server keeps the files")
			}
			p := b.newPayer(unit(10))
			id := b.rich(p)
			b.settle(richEnd(id))
			reader := b.database().Begin(&sql.TxOptions{ReadOnly: true})
			b.noError(reader.Error)
			var tasks int
			b.noError(reader.Raw("SELECT COUNT(*) FROM tasks").Scan(&tasks).Error)
			b.eraseTask(p, id)
			if len(b.holds(secretWord)) == 0 {
				b.Error("the reader's log is gone")
			}
			b.noError(reader.Commit().Error)
			b.submit(p, unit(1))
			same(b, "left", b.holds(secretWord), nil)
		},
		"only what has ended is erased, by who has it, and not under a task that works on it": func(b *bench) {
			p, stranger := b.newPayer(unit(10)), b.newPayer(unit(10))
			id := b.rich(p)
			b.kind(errOf(b.EraseTask(b.Context(), p.account, id)), mediagate.KindConflict)
			b.settle(richEnd(id))
			for _, wrong := range []struct{ account, id string }{{stranger.account, id}, {p.account, "task_none"}} {
				b.kind(errOf(b.EraseTask(b.Context(), wrong.account, wrong.id)), mediagate.KindNotFound)
			}
			follow := must(b.followUp(p, id))
			same(b, "the conflict names it", strings.Contains(b.kind(errOf(b.EraseTask(b.Context(), p.account, id)), mediagate.KindConflict).Message, follow), true)
			same(b, "untouched", string(b.task(id).Params), string(b.richDraft(p).Task.Params))
			b.settle(cancelled(follow))
			b.eraseTask(p, id)
		},
		"a follow-up and an erasure at once agree": func(b *bench) {
			p := b.newPayer(unit(1000))
			for range 15 {
				id := b.accepted(p, unit(1))
				b.settle(completed(id, unit(1)))
				var refused, conflicts atomic.Int64
				b.race(2, func(i int) {
					if i == 0 {
						if _, err := b.EraseTask(b.Context(), p.account, id); mediagate.Is(err, mediagate.KindConflict) {
							conflicts.Add(1)
						} else if err != nil {
							b.Errorf("erase: %v", err)
						}
						return
					}
					if _, err := b.followUp(p, id); mediagate.Is(err, mediagate.KindNotFound) {
						refused.Add(1)
					} else if err != nil {
						b.Errorf("submit: %v", err)
					}
				})
				if refused.Load()+conflicts.Load() != 1 {
					b.Fatalf("%d submits were refused and %d erasures, want one of both", refused.Load(), conflicts.Load())
				}
			}
		},
		"what comes late writes nothing back": func(b *bench) {
			p := b.newPayer(unit(30))
			running, late, broken := b.rich(p), b.submit(p, unit(1)), b.accepted(p, unit(1))
			intent := intentOf(late, 1, b.now())
			b.change(late, intent, task.SubmitUnknown{Sending: intent.Sending})
			rows := b.claim("claim")
			b.pass(time.Minute)
			b.settle(cancelled(running))
			b.settle(failed(late))
			b.change(broken, task.VendorEnded{N: 1, Outcome: mediagate.Outcome{Failure: &mediagate.Failure{Code: mediagate.CodeGenerationFailed, Message: "zebrafish", Retryable: true}}}, task.EndDue{})
			before := map[string]mediagate.Task{}
			for _, id := range []string{running, late, broken} {
				b.eraseTask(p, id)
				before[id] = b.task(id)
			}
			same(b, "the failure", before[broken].Failure, &mediagate.Failure{Code: mediagate.CodeGenerationFailed, Retryable: true})

			outcome := richOutcome()
			changed := b.change(late, task.Accepted{Sending: intentOf(late, 1, b.now()).Sending, Submission: mediagate.Submission{Ref: mediagate.JobRef{JobID: "zebrafish"}}, FirstPollAt: b.now()})
			same(b, "to be stopped at the vendor", changed.Effects.Stop, []int{1})
			same(b, "polled for", b.waiting(), 0)
			b.load("it has its slot, as the cancelled one", 2, 0, b.state(late).Last().CreatedAt)
			for id := range before {
				for _, e := range []task.Event{
					task.InputsChecked{Check: mediagate.InputCheck{Passed: []string{"zebrafish"}}},
					task.Refused{Sending: intent.Sending, Failure: mediagate.Failure{Message: "zebrafish"}, Detail: "zebrafish"},
					task.SubmitUnknown{Sending: intent.Sending, Detail: "zebrafish"},
					task.VendorEnded{N: 1, Outcome: outcome},
					task.VendorEnded{N: 2, Outcome: outcome},
					task.Mirrored{N: 1, Results: []mediagate.Result{{Key: "zebrafish"}}},
					task.Accepted{Sending: intentOf(late, 1, b.now()).Sending, Submission: mediagate.Submission{Ref: mediagate.JobRef{JobID: "zebrafish"}, Outcome: &outcome}},
					task.StepEnded{Step: task.Mirror, N: 1, Failed: true, Reason: "zebrafish"},
					task.EndDue{},
					task.Asked{Seen: task.Seen{Sending: task.Sending{N: 9}}},
				} {
					b.change(id, e)
				}
				b.deliver(mediagate.Delivery{TaskID: id, Round: 1, Attempt: 1, At: b.now(), Error: "zebrafish"}, mediagate.WebhookDelivered)
			}
			for _, r := range rows {
				b.store("claim", mediagate.PollResult{TaskID: r.TaskID, N: r.N, Outcome: &outcome})
			}
			same(b, "after", b.holds(secretWord), nil)
			for id, task := range before {
				same(b, "the row", b.task(id), task)
			}
		},
		"the files of an erased task are swept at once, and when no copy can be under way": func(b *bench) {
			p := b.newPayer(unit(10))
			id, old := b.accepted(p, unit(1)), b.accepted(p, unit(1))
			b.settle(completed(old, unit(1)))
			b.pass(2*mediagate.CopyLimit + time.Second)
			b.settle(completed(id, unit(1)))
			end := b.now()
			b.eraseTask(p, id)
			b.eraseTask(p, old)
			b.pass(time.Microsecond)
			b.dueSweeps("both", 10, id, old)
			sweep := b.sweep(id)
			same(b, "again", sweep.Again, end.Add(2*mediagate.CopyLimit))
			same(b, "once", b.sweep(old).Again, time.Time{})
			b.noError(b.SetSweep(b.Context(), b.sweep(old), time.Time{}))
			b.noError(b.SetSweep(b.Context(), sweep, sweep.Again))
			b.dueSweeps("in between", 10)
			b.pass(2 * mediagate.CopyLimit)
			b.dueSweeps("again", 10, id)
		},
		"a sweep of before an erasure does not count for it": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.accepted(p, unit(1))
			b.settle(failed(id))
			b.pass(2*mediagate.CopyLimit + time.Second)
			under := b.sweep(id)
			b.eraseTask(p, id)
			b.noError(b.SetSweep(b.Context(), under, time.Time{}))
			b.pass(time.Microsecond)
			b.dueSweeps("still due", 10, id)
		},
		"an account's inputs go with the end, whatever it is": func(b *bench) {
			p := b.newPayer(unit(100))
			open := b.rich(p) // before the setting: it counts at the end
			b.changeAccount(p, func(a *mediagate.Account) { a.EraseInputs = true })
			lost, gone := b.rich(p), b.rich(p)
			expired := b.richDraft(p)
			must2(b.Submit(b.Context(), expired))
			why := &mediagate.Failure{Code: mediagate.CodeGenerationFailed, Message: secretWord}
			ends := map[string]end{
				"completed": richEnd(open), "cancelled": cancelled(gone), "never sent": failed(expired.Task.ID),
				"failed": {lost, mediagate.StatusFailed, []task.Event{task.VendorEnded{N: 2, Outcome: mediagate.Outcome{Failure: why, VendorText: secretWord}}, task.EndDue{}}},
			}
			for name, end := range ends {
				if !strings.Contains(string(b.task(end.id).Params), secretWord) {
					b.Errorf("%s: the request was gone before the end", name)
				}
				b.settle(end)
				t := b.task(end.id)
				same(b, name+": request", []any{string(t.Params), t.Modal.Input, t.Plan, t.InputsErasedAt, t.ErasedAt},
					[]any{`{}`, json.RawMessage(nil), expired.Task.Plan.WithoutInputs(), b.now(), time.Time{}})
				same(b, name+": what a client finds it by", []any{t.Reference, t.Webhook.URL}, []any{"order of a zebrafish", "https://receiver.example.com/zebrafish"})
				same(b, name+": failure", t.Failure, t.Failure.WithoutMessage())
				first := must(b.State(b.Context(), end.id, 1))
				same(b, name+": checked inputs", first.Inputs, mediagate.InputCheck{})
				for _, a := range first.Attempts {
					same(b, name+": the attempt's texts", []any{a.Error, a.Refusal, a.Failure}, []any{"", a.Refusal.WithoutMessage(), a.Failure.WithoutMessage()})
					if a.Outcome != nil {
						same(b, name+": outcome", *a.Outcome, a.Outcome.WithoutInputs())
					}
				}
			}
			t := b.task(open)
			same(b, "results stay", []any{t.Results[0].Key, t.Made}, []any{"results/" + open + "/2/0", richOutcome().Made.WithoutPrompt()})
			producer := must(b.Producer(b.Context(), open))
			same(b, "it can be worked on", producer.Ref.JobID, "job-zebrafish")
			must(b.followUp(p, open))
			b.pass(time.Microsecond)
			due := must(b.DueSweeps(b.Context(), 10))
			same(b, "their uploads are swept", len(due), len(ends))
		},
		"what is heard after the end is stored without words where inputs are erased": func(b *bench) {
			p := b.newPayer(unit(10))
			b.changeAccount(p, func(a *mediagate.Account) { a.EraseInputs = true })
			id := b.submit(p, unit(1))
			intent, outcome := intentOf(id, 1, b.now()), richOutcome()
			b.change(id, intent, task.SubmitUnknown{Sending: intent.Sending})
			b.pass(time.Minute)
			b.settle(cancelled(id))
			b.change(id, task.Accepted{Sending: intentOf(id, 1, b.now()).Sending, Submission: mediagate.Submission{Ref: ref(id), Outcome: &outcome}})
			got := b.attempt(id)
			same(b, "accepted", []any{got.Ref, *got.Outcome}, []any{ref(id), outcome.WithoutInputs()})
		},
	})
}
