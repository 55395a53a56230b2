package storagetest

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage"
)

// eraser is what only the database has: the double of the activities' tests
// knows no clients that erase.
type eraser interface {
	EraseTask(ctx context.Context, accountID, id string) (uploads []string, err error)
}

func (b *bench) eraser() eraser {
	b.Helper()
	store, ok := b.Path.(*storage.Store)
	if !ok {
		b.Fatal("not a database")
	}
	return store
}

func (b *bench) eraseTask(p payer, id string) []string {
	b.Helper()
	uploads, err := b.eraser().EraseTask(b.Context(), p.account, id)
	b.noError(err)
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
	if len(tables) > 0 || b.backend.Files == "" {
		return sorted(tables)
	}
	files, err := filepath.Glob(b.backend.Files)
	b.noError(err)
	if len(files) < 2 {
		b.Fatalf("only the files %v", files)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		b.noError(err)
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
		Succeeded: true, VendorText: "made a zebrafish", Seconds: 5, VendorCharge: mediagate.ChargedBy("0.25", "USD"),
		Media: []mediagate.Media{{URL: "https://cdn.example.com/zebrafish.mp4", Name: "zebrafish"}},
		Made: &mediagate.Made{
			Prompt: "zebrafish --v 7", Buttons: []mediagate.Button{{CustomID: "MJ::zebrafish"}},
			Clips: []mediagate.Clip{{ID: "clip-zebrafish", Title: "zebrafish"}}, Voices: []string{"voice-zebrafish"},
		},
	}
}

// rich is a task that has gone through all that writes texts: a verdict, a
// refusal, a lost call, calls in parts, modal parameters, commands. It is
// processing, its second attempt accepted.
func (b *bench) rich(p payer) string {
	b.Helper()
	n := b.richDraft(p)
	_, _, err := b.Submit(b.Context(), n)
	b.noError(err)
	id := n.Task.ID
	b.noError(b.StoreJudgement(b.Context(), id, mediagate.Judgement{Passed: []string{"zebrafish"}, Failure: &mediagate.Failure{Message: "zebrafish"}}))
	row := b.intent(id, 1)
	opened, err := b.OpenPart(b.Context(), mediagate.Part{TaskID: id, N: 1, SendBefore: row.SendBefore})
	b.noError(err)
	same(b, "opened", opened, true)
	outcome := richOutcome()
	b.noError(b.EndPart(b.Context(), mediagate.Part{
		TaskID: id, N: 1, State: mediagate.PartDone, SendBefore: row.SendBefore, Error: "zebrafish", Failure: &mediagate.Failure{Message: "zebrafish"},
		Submission: &mediagate.Submission{Ref: mediagate.JobRef{JobID: "part-zebrafish"}, Outcome: &outcome},
	}))
	b.noError(b.DoubtRefusal(b.Context(), id, 1, row.SendBefore, mediagate.Failure{Code: mediagate.CodeContentPolicy, Message: "a zebrafish"}, "zebrafish"))
	b.noError(b.RejectAttempt(b.Context(), id, 1, row.SendBefore, mediagate.Failure{Code: mediagate.CodeContentPolicy, Message: "a zebrafish"}, "zebrafish"))
	b.intent(id, 2)
	_, err = b.AcceptAttempt(b.Context(), id, 2, mediagate.Submission{
		Ref: mediagate.JobRef{JobID: "job-zebrafish", ExternalID: "ours-zebrafish", State: "zebrafish"},
	}, b.now())
	b.noError(err)
	b.noError(b.database().Exec("UPDATE tasks SET modal_input = ? WHERE id = ?", `{"prompt":"zebrafish","mask_url":"https://client.example.com/zebrafish"}`, id).Error)
	return id
}

// richEnd completes such a task.
func (b *bench) richEnd(id string) mediagate.Settlement {
	b.Helper()
	outcome := richOutcome()
	_, err := b.RecordOutcome(b.Context(), id, 2, outcome)
	b.noError(err)
	end := completed(id, unit(3))
	end.N, end.Made = 2, outcome.Made
	end.Results[0].Key = "results/" + id + "/2/0"
	end.WebhookBody, end.WithoutInputs = []byte(`{"prompt":"zebrafish"}`), []byte(`{"prompt":""}`)
	b.noError(b.StoreMirrored(b.Context(), id, 2, end.Results))
	return end
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

var eraseTests = map[string]func(*bench){
	"a task is erased whatever its vendor wrote into those that worked on it": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.rich(p)
		b.settle(b.richEnd(id))
		n := b.draft(p, unit(1))
		n.Task.Plan.Source = &mediagate.Source{TaskID: id, Clip: &mediagate.Clip{Title: "zebrafish", Lyrics: "one\x00two"}}
		follow, _, err := b.Submit(b.Context(), n)
		b.noError(err)
		b.settle(failed(follow))
		b.eraseTask(p, id)
		same(b, "left", b.holds(secretWord, `one\u0000two`), nil)
		same(b, "source", b.task(follow).Plan.Source, nil)
		same(b, "routes", b.task(follow).Plan.Routes, plan.Routes)
	},
	"nothing of an erased task is left that somebody wrote": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.rich(p)
		b.settle(b.richEnd(id))
		b.noError(b.RecordDelivery(b.Context(), mediagate.Delivery{TaskID: id, Round: 1, Attempt: 1, At: b.now(), Status: 503, Error: "zebrafish"}, "", ""))
		follow, err := b.followUp(p, id)
		b.noError(err)
		b.settle(failed(follow))
		tables := map[string]bool{}
		for _, found := range b.holds(secretWord) {
			table, _, _ := strings.Cut(found, ":")
			tables[table] = true
		}
		same(b, "before", tables, map[string]bool{"tasks": true, "attempts": true, "attempt_parts": true, "makers": true, "deliveries": true})

		before := b.task(id)
		same(b, "uploads", b.eraseTask(p, id), []string{"uploads/" + p.account + "/01A"})
		same(b, "after", b.holds(secretWord, "results/"+id), nil)
		t := b.task(id)
		same(b, "what stays", []any{t.AccountID, t.KeyID, t.Model, t.Type, t.Status, t.Hold, t.Cost, t.Charges, t.CreatedAt, t.EndedAt, t.ErasedAt, t.Version},
			[]any{p.account, p.key, before.Model, before.Type, mediagate.StatusCompleted, unit(4), unit(3), before.Charges, before.CreatedAt, before.EndedAt, b.now(), before.Version + 1})
		same(b, "the callback", *t.Webhook, mediagate.Webhook{State: mediagate.WebhookDropped, Reason: "task erased", Round: 1})
		same(b, "what the vendor took", b.attempt(id, 2).Outcome, &mediagate.Outcome{Succeeded: true, Seconds: 5, VendorCharge: mediagate.ChargedBy("0.25", "USD")})
		same(b, "the follow-up's plan", b.task(follow).Plan, b.draft(p, 0).Task.Plan)
		b.money(p, unit(7), 0, unit(3))
	},
	"an erased task is unknown": func(b *bench) {
		p := b.newPayer(unit(10))
		id, other := b.rich(p), b.accepted(p, unit(1))
		b.settle(b.richEnd(id))
		erased, _, err := b.Tasks(b.Context(), mediagate.TaskFilter{AccountID: p.account, Reference: "order of a zebrafish"})
		b.noError(err)
		same(b, "listed", len(erased), 1)
		b.eraseTask(p, id)
		ids := func(f mediagate.TaskFilter) (ids []string) {
			f.AccountID = p.account
			tasks, more, err := b.Tasks(b.Context(), f)
			b.noError(err)
			same(b, "more", more, false)
			for _, t := range tasks {
				ids = append(ids, t.ID)
			}
			return ids
		}
		same(b, "the list", ids(mediagate.TaskFilter{Limit: 1}), []string{other})
		same(b, "by status", ids(mediagate.TaskFilter{Status: mediagate.StatusCompleted}), nil)
		same(b, "by reference", ids(mediagate.TaskFilter{Reference: "order of a zebrafish"}), nil)
		versions, err := b.Versions(b.Context(), []string{id, other})
		b.noError(err)
		same(b, "versions", versions, map[string]int64{other: 2})
		_, _, err = b.Tasks(b.Context(), mediagate.TaskFilter{AccountID: p.account, After: id})
		b.kind(err, mediagate.KindInvalid)
		missing := func(what string, err error) {
			b.Helper()
			if !mediagate.Is(err, mediagate.KindNotFound) {
				b.Errorf("%s: %v", what, err)
			}
		}
		_, err = b.Task(b.Context(), p.account, id)
		missing("task", err)
		_, err = b.RequestCancel(b.Context(), p.account, id)
		missing("cancel", err)
		_, _, err = b.SubmitModal(b.Context(), mediagate.ModalCall{AccountID: p.account, TaskID: id, Input: []byte(`{}`), IdempotencyKey: "m"})
		missing("modal", err)
		_, err = b.eraser().EraseTask(b.Context(), p.account, id)
		missing("erased again", err)
		_, err = b.Producer(b.Context(), id)
		missing("producer", err)
		_, err = b.WebhookTarget(b.Context(), id, 1)
		missing("callback", err)
		for kind, vendorID := range map[mediagate.MadeKind]string{mediagate.MadeClip: "clip-zebrafish", mediagate.MadeVoice: "voice-zebrafish"} {
			_, err = b.MadeBy(b.Context(), p.account, kind, vendorID)
			missing(vendorID, err)
		}
		_, err = b.followUp(p, id)
		missing("source", err)
		same(b, "no trace of it", b.count("SELECT COUNT(*) FROM idempotency WHERE key LIKE 'follow%'"), 0)

		n := b.richDraft(p)
		got, found, err := b.Replay(b.Context(), p.account, "once "+id, n.Path, n.BodySHA256)
		b.noError(err)
		same(b, "the acknowledgement stays for as long as it would", []any{got, found}, []any{id, true})
	},
	"nothing is left of many tasks, of any length": func(b *bench) {
		p := b.newPayer(unit(1000))
		var ids []string
		for i := range 120 {
			n := b.richDraft(p)
			n.Task.Params = fmt.Appendf(nil, `{"prompt":%q}`, strings.Repeat("a zebrafish ", 1+i*i%700))
			_, _, err := b.Submit(b.Context(), n)
			b.noError(err)
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
		if b.backend.Files == "" {
			b.Skip("the server keeps the files")
		}
		p := b.newPayer(unit(10))
		id := b.rich(p)
		b.settle(b.richEnd(id))
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
		_, err := b.eraser().EraseTask(b.Context(), p.account, id)
		b.kind(err, mediagate.KindConflict)
		b.settle(b.richEnd(id))
		for _, wrong := range []struct{ account, id string }{{stranger.account, id}, {p.account, "task_none"}} {
			_, err = b.eraser().EraseTask(b.Context(), wrong.account, wrong.id)
			b.kind(err, mediagate.KindNotFound)
		}
		follow, err := b.followUp(p, id)
		b.noError(err)
		_, err = b.eraser().EraseTask(b.Context(), p.account, id)
		b.kind(err, mediagate.KindConflict)
		if !strings.Contains(err.Error(), follow) {
			b.Errorf("the conflict names no task: %v", err)
		}
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
					if _, err := b.eraser().EraseTask(b.Context(), p.account, id); mediagate.Is(err, mediagate.KindConflict) {
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
		p := b.newPayer(unit(10))
		lost, late := b.rich(p), b.submit(p, unit(1))
		row := b.intent(late, 1)
		opened, err := b.OpenPart(b.Context(), mediagate.Part{TaskID: late, N: 1, SendBefore: row.SendBefore})
		b.noError(err)
		same(b, "opened", opened, true)
		_, rows := b.claim("claim")
		b.settle(cancelled(lost))
		end := failed(late)
		end.Failure.Message = secretWord
		b.settle(end)
		b.eraseTask(p, lost)
		b.eraseTask(p, late)
		outcome := richOutcome()
		before := b.task(late)

		ended, err := b.AcceptAttempt(b.Context(), late, 1, mediagate.Submission{Ref: mediagate.JobRef{JobID: "zebrafish"}}, b.now())
		b.noError(err)
		same(b, "to be stopped at the vendor", ended, true)
		inFlight, _, _, err := b.ChannelLoad(b.Context(), channelName)
		b.noError(err)
		same(b, "it has its slot, as the cancelled one", inFlight, 2)
		ended, err = b.AcceptAttempt(b.Context(), late, 1, mediagate.Submission{Ref: mediagate.JobRef{JobID: "zebrafish"}, Outcome: &outcome}, b.now())
		b.noError(err)
		same(b, "with its files", ended, true)
		for _, id := range []string{lost, late} {
			won, err := b.RecordOutcome(b.Context(), id, 1, outcome)
			b.noError(err)
			same(b, "won", won, false)
			b.noError(b.StoreMirrored(b.Context(), id, 1, []mediagate.Result{{Key: "zebrafish"}}))
			b.noError(b.RejectAttempt(b.Context(), id, 1, row.SendBefore, mediagate.Failure{Message: "zebrafish"}, "zebrafish"))
			b.noError(b.MarkUnknown(b.Context(), id, 1, row.SendBefore, "zebrafish"))
			b.noError(b.DoubtRefusal(b.Context(), id, 1, row.SendBefore, mediagate.Failure{Message: "zebrafish"}, "zebrafish"))
			b.noError(b.GiveUpAttempt(b.Context(), id, 1, "zebrafish"))
			b.noError(b.EndPart(b.Context(), mediagate.Part{
				TaskID: id, N: 1, State: mediagate.PartDone, SendBefore: row.SendBefore, Error: "zebrafish", Submission: &mediagate.Submission{Outcome: &outcome},
			}))
			b.noError(b.StoreJudgement(b.Context(), id, mediagate.Judgement{Passed: []string{"zebrafish"}}))
			b.noError(b.RecordDelivery(b.Context(), mediagate.Delivery{TaskID: id, Round: 1, Attempt: 1, At: b.now(), Error: "zebrafish"}, mediagate.WebhookDelivered, ""))
			b.noError(b.Park(b.Context(), id, mediagate.ParkInternal))
			_, won, err = b.Settle(b.Context(), mediagate.Settlement{TaskID: id, N: 1, Status: mediagate.StatusCompleted, Made: outcome.Made, WebhookBody: []byte(secretWord)})
			b.noError(err)
			same(b, "settled again", won, false)
		}
		for _, r := range rows {
			_, err := b.StorePolls(b.Context(), channelName, "claim", []mediagate.PollResult{{TaskID: r.TaskID, N: r.N, Outcome: &outcome}})
			b.noError(err)
		}
		same(b, "after", b.holds(secretWord), nil)
		same(b, "the row", b.task(late), before)
		same(b, "the end", b.task(late).Failure, &mediagate.Failure{Code: mediagate.CodeGenerationFailed, Retryable: true})
		for what, find := range map[string]func() ([]string, error){
			"unseen": func() ([]string, error) { return b.unseen(0, 10) },
			"open": func() ([]string, error) {
				looks, err := b.OpenTasks(b.Context(), b.now().Add(time.Hour), mediagate.Look{}, 10)
				same(b, "open", len(looks), 0)
				return nil, err
			},
			"cancels": func() ([]string, error) { return b.staleCancels(10) },
		} {
			b.finds(what, nil, find)
		}
		b.pass(time.Hour)
		rounds, err := b.PendingWebhooks(b.Context(), time.Minute, time.Minute, 10)
		b.noError(err)
		same(b, "rounds", rounds, []mediagate.WebhookRound{})
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
		b.finds("both", sorted([]string{id, old}), func() ([]string, error) {
			ids, err := b.dueSweeps(10)
			return sorted(ids), err
		})
		sweep := b.sweep(id)
		same(b, "again", sweep.Again, end.Add(2*mediagate.CopyLimit))
		same(b, "once", b.sweep(old).Again, time.Time{})
		b.noError(b.SetSweep(b.Context(), b.sweep(old), time.Time{}))
		b.noError(b.SetSweep(b.Context(), sweep, sweep.Again))
		b.finds("in between", nil, func() ([]string, error) { return b.dueSweeps(10) })
		b.pass(2 * mediagate.CopyLimit)
		b.finds("again", []string{id}, func() ([]string, error) { return b.dueSweeps(10) })
	},
	"the run of an erased task is still told of its end": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.rich(p)
		epoch, _ := b.claim("c")
		outcome := richOutcome()
		b.store("c", mediagate.PollResult{TaskID: id, N: 2, Outcome: &outcome})
		end := completed(id, unit(3))
		end.N = 2
		end.UnlessOvertaken, end.RunUntold = true, true
		b.settle(end)
		b.eraseTask(p, id)
		same(b, "left", b.holds(secretWord), nil)
		same(b, "outstanding", b.story(id).Outstanding, true)
		b.pass(time.Hour)
		untold, err := b.UntoldEnds(b.Context(), time.Minute, "", 10)
		b.noError(err)
		same(b, "untold", untold, []string{id})
		rows, err := b.ClaimDue(b.Context(), channelName, epoch, "d", lease, 10)
		b.noError(err)
		same(b, "signalled", len(rows), 1)
		same(b, "nothing is asked for", rows[0].Ended, true)
		b.noError(b.DropAwait(b.Context(), id, 2))
		same(b, "heard", b.story(id).Outstanding, false)
	},
	"a sweep of before an erasure does not count for it": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(1))
		_, err := b.RecordOutcome(b.Context(), id, 1, success)
		b.noError(err)
		b.settle(failed(id))
		b.pass(2*mediagate.CopyLimit + time.Second)
		under := b.sweep(id)
		b.eraseTask(p, id)
		b.noError(b.SetSweep(b.Context(), under, time.Time{}))
		b.pass(time.Microsecond)
		b.finds("still due", []string{id}, func() ([]string, error) { return b.dueSweeps(10) })
	},
	"an account's inputs go with the end, whatever it is": func(b *bench) {
		p := b.newPayer(unit(100))
		open := b.rich(p) // before the setting: it counts at the end
		_, err := b.UpdateAccount(b.Context(), p.account, func(a *mediagate.Account) error {
			a.EraseInputs = true
			return nil
		})
		b.noError(err)
		ends := map[string]mediagate.Settlement{"completed": b.richEnd(open)}
		for _, end := range []mediagate.Settlement{failed(b.rich(p)), cancelled(b.rich(p))} {
			end.N = 2
			if end.Failure != nil {
				end.Failure.Message, end.WebhookBody, end.WithoutInputs = secretWord, []byte(secretWord), []byte(`{}`)
			}
			ends[string(end.Status)] = end
		}
		expired := b.richDraft(p)
		_, _, err = b.Submit(b.Context(), expired)
		b.noError(err)
		end := failed(expired.Task.ID)
		end.N, end.Failure.Message, end.WithoutInputs = 0, secretWord, []byte(`{}`)
		ends["never sent"] = end
		for name, end := range ends {
			if !strings.Contains(string(b.task(end.TaskID).Params), secretWord) {
				b.Errorf("%s: the request was gone before the end", name)
			}
			b.settle(end)
			t := b.task(end.TaskID)
			same(b, name+": request", []any{string(t.Params), t.Modal.Input, t.Plan, t.InputsErasedAt, t.ErasedAt},
				[]any{`{}`, json.RawMessage(nil), expired.Task.Plan.WithoutInputs(), b.now(), time.Time{}})
			same(b, name+": what a client finds it by", []any{t.Reference, t.Webhook.URL}, []any{"order of a zebrafish", "https://receiver.example.com/zebrafish"})
			j, err := b.Judgement(b.Context(), end.TaskID)
			b.noError(err)
			same(b, name+": judgement", j, mediagate.Judgement{})
			if t.Failure != nil {
				same(b, name+": failure", t.Failure, end.Failure.Wordless())
			}
			attempts, err := b.Attempts(b.Context(), end.TaskID)
			b.noError(err)
			for _, a := range attempts {
				same(b, name+": the attempt's texts", []any{a.Error, a.Refusal.Wordless()}, []any{"", a.Refusal})
				if a.Outcome != nil {
					same(b, name+": outcome", *a.Outcome, a.Outcome.WithoutInputs())
				}
				parts, err := b.Parts(b.Context(), end.TaskID, a.N)
				b.noError(err)
				for _, part := range parts {
					same(b, name+": the call's texts", []any{part.Error, part.Failure, part.Submission.Outcome.VendorText}, []any{"", part.Failure.Wordless(), ""})
				}
			}
			if target, err := b.WebhookTarget(b.Context(), end.TaskID, 1); err == nil {
				same(b, name+": callback", string(target.Body), string(end.WithoutInputs))
			}
		}
		done := ends["completed"]
		t := b.task(done.TaskID)
		same(b, "results stay", []any{t.Results, t.Made}, []any{done.Results, done.Made.WithoutPrompt()})
		producer, err := b.Producer(b.Context(), done.TaskID)
		b.noError(err)
		same(b, "it can be worked on", producer.Ref.JobID, "job-zebrafish")
		_, err = b.followUp(p, done.TaskID)
		b.noError(err)
		b.pass(time.Microsecond)
		due, err := b.dueSweeps(10)
		b.noError(err)
		same(b, "their uploads are swept", len(due), len(ends))
	},
	"what is heard after the end is stored without words where inputs are erased": func(b *bench) {
		p := b.newPayer(unit(10))
		_, err := b.UpdateAccount(b.Context(), p.account, func(a *mediagate.Account) error {
			a.EraseInputs = true
			return nil
		})
		b.noError(err)
		id := b.submit(p, unit(1))
		row := b.intent(id, 1)
		opened, err := b.OpenPart(b.Context(), mediagate.Part{TaskID: id, N: 1, SendBefore: row.SendBefore})
		b.noError(err)
		same(b, "opened", opened, true)
		b.settle(cancelled(id))
		outcome := richOutcome()
		b.noError(b.EndPart(b.Context(), mediagate.Part{
			TaskID: id, N: 1, State: mediagate.PartDone, SendBefore: row.SendBefore, Error: "zebrafish", Failure: &mediagate.Failure{Message: "zebrafish"},
			Submission: &mediagate.Submission{Outcome: &outcome},
		}))
		parts, err := b.Parts(b.Context(), id, 1)
		b.noError(err)
		same(b, "part", []any{parts[0].Error, parts[0].Failure, *parts[0].Submission.Outcome}, []any{"", &mediagate.Failure{}, outcome.WithoutInputs()})
		_, err = b.AcceptAttempt(b.Context(), id, 1, mediagate.Submission{Ref: ref(id), Outcome: &outcome}, b.now())
		b.noError(err)
		got := b.attempt(id, 1)
		same(b, "accepted", []any{got.Ref, *got.Outcome}, []any{ref(id), outcome.WithoutInputs()})
	},
	"a callback is never made with inputs that are to go": func(b *bench) {
		p := b.newPayer(unit(10))
		_, err := b.UpdateAccount(b.Context(), p.account, func(a *mediagate.Account) error {
			a.EraseInputs = true
			return nil
		})
		b.noError(err)
		id := b.accepted(p, unit(1))
		_, _, err = b.Settle(b.Context(), completed(id, unit(1)))
		b.kind(err, mediagate.KindInternal)
		same(b, "status", b.task(id).Status, mediagate.StatusProcessing)
	},
	"sources of before are known": func(b *bench) {
		p := b.newPayer(unit(10))
		id, plain := b.accepted(p, unit(1)), b.accepted(p, unit(1))
		b.settle(completed(id, unit(1)))
		follow, err := b.followUp(p, id)
		b.noError(err)
		b.undoCheck()
		for _, statement := range []string{
			"DROP INDEX tasks_kind", "DROP INDEX tasks_model", "DROP INDEX tasks_source", "ALTER TABLE tasks DROP COLUMN source_id", "DROP INDEX tasks_account",
			"CREATE INDEX tasks_account ON tasks (account_id, id)", "ALTER TABLE tasks DROP COLUMN erased_at",
			"ALTER TABLE tasks DROP COLUMN inputs_erased_at", "ALTER TABLE ledger_transfers DROP COLUMN counted_day",
			"UPDATE keys SET day_used = 0, week_used = 0, month_used = 0", "DELETE FROM goose_db_version WHERE version_id >= 21",
		} {
			b.noError(b.database().Exec(statement).Error)
		}
		b.noError(b.Migrate(b.Context()))
		same(b, "sources", b.count("SELECT COUNT(*) FROM tasks WHERE source_id = ? AND id = ?", id, follow), 1)
		same(b, "no source", b.count("SELECT COUNT(*) FROM tasks WHERE source_id = '' AND id IN (?, ?)", id, plain), 2)
	},
}
