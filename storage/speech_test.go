package storage_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
)

const speechLease = 30 * time.Second

func (b *bench) newSpeech(p payer, hold mediagate.Micros) mediagate.Speech {
	return mediagate.Speech{
		ID: fmt.Sprintf("speech_%06d", b.tasks.Add(1)), AccountID: p.account, KeyID: p.key, RequestID: "req_1", Model: "eta-4o-mini-tts",
		Charges: []mediagate.Charge{{Item: "eta-4o-mini-tts", Unit: mediagate.UnitCharacter, Quantity: 1, UnitPrice: hold}}, Hold: hold,
	}
}

// speak opens a speech and returns its id.
func (b *bench) speak(p payer, hold mediagate.Micros) string {
	b.Helper()
	n := b.newSpeech(p, hold)
	b.noError(b.OpenSpeech(b.Context(), n, speechLease))
	return n.ID
}

func (b *bench) endSpeech(id string, end mediagate.SpeechState) {
	b.Helper()
	won := must(b.EndSpeech(b.Context(), id, end))
	same(b, "ended by this call", won, true)
}

// lapse voids what is over.
func (b *bench) lapse(want int) {
	b.Helper()
	voided := must(b.VoidSpeeches(b.Context(), 100))
	same(b, "voided", voided, want)
}

func TestSpeechFacts(t *testing.T) {
	t.Parallel()
	prove(t, facts{
		"a speech holds its price": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.speak(p, unit(4))
			b.money(p, unit(6), unit(4), 0)
			transfers, _ := must2(b.Ledger(b.Context(), p.account, id, "", 10))
			same(b, "transfers", transfers, []mediagate.Transfer{{
				ID: transfers[0].ID, Kind: mediagate.EntryHold, AccountID: p.account, KeyID: p.key, TaskID: id, Amount: unit(4), At: b.now(),
			}})
			same(b, "what it counts", b.count("SELECT COUNT(*) FROM speeches WHERE charges LIKE '%\"item\":\"eta-4o-mini-tts\"%\"quantity\":1%'"), 1)
			b.checkLedger()
		},
		"an id is taken once": func(b *bench) {
			p := b.newPayer(unit(4))
			n := b.newSpeech(p, unit(1))
			b.noError(b.OpenSpeech(b.Context(), n, speechLease))
			b.kind(b.OpenSpeech(b.Context(), n, speechLease), mediagate.KindConflict)
			b.money(p, unit(3), unit(1), 0)
		},
		"nothing else is an end": func(b *bench) {
			id := b.speak(b.newPayer(unit(10)), unit(1))
			b.kind(errOf(b.EndSpeech(b.Context(), id, mediagate.SpeechOpen)), mediagate.KindInternal)
			won := must(b.EndSpeech(b.Context(), "speech_none", mediagate.SpeechPosted))
			same(b, "won", won, false)
		},
		"a lease that is over voids, and not before": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.speak(p, unit(4))
			b.pass(speechLease - time.Microsecond)
			b.lapse(0)
			b.pass(time.Microsecond)
			b.lapse(1)
			b.lapse(0)
			b.money(p, unit(10), 0, 0)
			won := must(b.EndSpeech(b.Context(), id, mediagate.SpeechPosted))
			same(b, "posted late", won, false)
			b.money(p, unit(10), 0, 0)
		},
		"a renewed lease holds on": func(b *bench) {
			id := b.speak(b.newPayer(unit(10)), unit(4))
			b.pass(speechLease - time.Second)
			open := must(b.RenewSpeech(b.Context(), id, speechLease))
			same(b, "open", open, true)
			b.pass(speechLease - time.Second)
			b.lapse(0)
			b.pass(time.Second)
			b.lapse(1)
			open = must(b.RenewSpeech(b.Context(), id, speechLease))
			same(b, "open after the end", open, false)
			b.lapse(0)
		},
		"the oldest are voided first, a batch at a time": func(b *bench) {
			p := b.newPayer(unit(10))
			for range 5 {
				b.speak(p, unit(1))
				b.pass(time.Second)
			}
			b.pass(speechLease - 3*time.Second) // the last two live
			for _, want := range []int{2, 1, 0} {
				voided := must(b.VoidSpeeches(b.Context(), 2))
				same(b, "voided", voided, want)
			}
			b.money(p, unit(8), unit(2), 0)
		},
		"one that cannot be voided keeps none of the others": func(b *bench) {
			p := b.newPayer(unit(10))
			b.endSpeech(b.speak(p, unit(1)), mediagate.SpeechPosted)
			b.noError(b.database().Exec("UPDATE speeches SET state = 'open', cost = 0, ended_at = NULL, void_after = created_at").Error)
			b.speak(p, unit(2))
			b.pass(speechLease)
			voided, err := b.VoidSpeeches(b.Context(), 100)
			b.kind(err, mediagate.KindInternal)
			same(b, "voided", voided, 1)
			a := must(b.Account(b.Context(), p.account))
			same(b, "money", []mediagate.Micros{a.Available, a.Held, a.Spent}, []mediagate.Micros{unit(9), 0, unit(1)})
			b.noError(b.database().Exec("UPDATE speeches SET state = 'posted', cost = hold, ended_at = created_at WHERE state = 'open'").Error)
		},
		"of a late post and those who void one wins": func(b *bench) {
			p := b.newPayer(unit(10))
			var posted, voided atomic.Int64
			ids := make([]string, 8)
			for i := range ids {
				ids[i] = b.speak(p, unit(1))
			}
			b.pass(speechLease)
			b.race(12, func(i int) {
				if i < len(ids) {
					won := must(b.EndSpeech(b.Context(), ids[i], mediagate.SpeechPosted))
					if won {
						posted.Add(1)
					}
					return
				}
				n := must(b.VoidSpeeches(b.Context(), 100))
				voided.Add(int64(n))
			})
			same(b, "ends", posted.Load()+voided.Load(), int64(len(ids)))
			spent := unit(posted.Load())
			b.money(p, unit(10)-spent, 0, spent)
		},
		"of a renewal and a void one wins": func(b *bench) {
			id := b.speak(b.newPayer(unit(10)), unit(1))
			b.pass(speechLease)
			var open bool
			var voided int
			b.race(2, func(i int) {
				var err error
				if i == 0 {
					open, err = b.RenewSpeech(b.Context(), id, speechLease)
				} else {
					voided, err = b.VoidSpeeches(b.Context(), 1)
				}
				if err != nil {
					b.Errorf("%v", err)
				}
			})
			if open == (voided == 1) {
				b.Errorf("renewed %v, voided %d", open, voided)
			}
		},
	})
}
