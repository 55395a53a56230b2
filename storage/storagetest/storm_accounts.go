package storagetest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
)

// What actors do with accounts, keys and money; storm_deeds.go has what they do with tasks.

func (a *actor) grant() {
	p := a.payer()
	amount := mediagate.Micros(a.dice.Int64N(int64(unit(12)))) - unit(4) + 1
	reference := fmt.Sprint("grant-", a.dice.IntN(40))
	_, _, created, err := a.Grant(a.acting(), p.account, amount, reference)
	if a.fine("grant", err, mediagate.KindConflict, mediagate.KindInvalid) && created {
		a.first("the grant %s of %s", reference, p.account)
	}
}

// dropKey ends one of the keys with a quota: others keep spending.
func (a *actor) dropKey() {
	if p := a.other(); a.dice.IntN(8) == 0 {
		a.fine("delete key", a.DeleteKey(a.Context(), p.key), mediagate.KindNotFound)
	}
}

func (a *actor) rotateKey() {
	p := a.other()
	secret := mediagate.KeySecret{Hash: sha256.Sum256(fmt.Append(nil, a.dice.Uint64()))}
	k, err := a.RotateKey(a.acting(), p.key, secret, time.Duration(a.dice.IntN(600))*time.Second)
	if !a.fine("rotate", err, mediagate.KindConflict, mediagate.KindNotFound) {
		return
	}
	a.first("the rotation of %s", p.key)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.payers = append(a.payers, payer{p.account, k.ID})
}

// acting is a context in which what is changed is noted.
func (a *actor) acting() context.Context { return mediagate.WithActor(a.Context(), someone) }

// give makes a key at the word of another, out of whose quota it comes.
func (a *actor) give() {
	p, quota := a.other(), mediagate.Micros(a.dice.Int64N(int64(unit(3))))
	secret := mediagate.KeySecret{Hash: sha256.Sum256(fmt.Append(nil, a.dice.Uint64()))}
	k, err := a.GiveKey(a.acting(), p.key, secret, func(mediagate.Key) (mediagate.Key, error) {
		return mediagate.Key{Quota: quota, Scopes: mediagate.Scopes()}, nil
	})
	if a.fine("give", err, mediagate.KindForbidden, mediagate.KindUnauthenticated) {
		a.mu.Lock()
		a.payers = append(a.payers, payer{p.account, k.ID})
		a.mu.Unlock()
	}
}

// erase erases a task, or lets its account's inputs go from now on.
func (a *actor) erase() {
	if t := a.any(); t != nil && a.dice.IntN(8) > 0 {
		if _, err := a.EraseTask(a.Context(), t.account, t.id); a.fine("erase", err, mediagate.KindConflict, mediagate.KindNotFound) {
			a.first("the erasure of %s", t.id)
		}
		return
	}
	_, err := a.UpdateAccount(a.acting(), a.other().account, func(row *mediagate.Account) error {
		row.EraseInputs = !row.EraseInputs
		return nil
	})
	a.fine("erase inputs", err)
}

// account asks what became of money, and counts what is not counted.
func (a *actor) account() {
	p := a.payer()
	_, err := a.CountVendorCharges(a.Context(), 5)
	a.fine("count usage", err)
	_, _, err = a.Usage(a.Context(), mediagate.UsageFilter{AccountID: p.account, By: []mediagate.UsageBy{mediagate.ByKey, mediagate.ByProvider}, Limit: 1000})
	a.fine("usage", err)
	st, err := a.Statement(a.Context(), mediagate.StatementFilter{AccountID: p.account, Limit: 10})
	if a.fine("statement", err) && st.Opening != (mediagate.Balance{}) {
		a.Errorf("before all that moved it, the balance of %s was %+v", p.account, st.Opening)
	}
	_, _, err = a.Audit(a.Context(), p.account, "", 5)
	a.fine("audit", err)
}

// limit sets or lifts what bounds a key or an account.
func (a *actor) limit() {
	p := a.other()
	var most *int
	if a.dice.IntN(3) == 0 {
		most = new(a.dice.IntN(12))
	}
	if a.dice.IntN(2) == 0 {
		_, err := a.UpdateAccount(a.acting(), p.account, func(row *mediagate.Account) error {
			row.InFlight, row.Unpaid = most, nil
			if a.dice.IntN(3) == 0 {
				row.Unpaid = new(unit(a.dice.Int64N(6)))
			}
			return nil
		})
		a.fine("limit account", err)
		return
	}
	week := unit(a.dice.Int64N(40))
	_, err := a.UpdateKey(a.acting(), p.key, func(k *mediagate.Key) error {
		k.InFlight, k.Caps.Week = most, &week
		return nil
	})
	a.fine("limit key", err, mediagate.KindInvalid, mediagate.KindNotFound)
}

// speak opens a speech, ends one, or voids those that are over.
func (a *actor) speak() {
	a.mu.Lock()
	known := slices.Clone(a.speeches)
	a.mu.Unlock()
	switch roll := a.dice.IntN(5); {
	case roll == 0:
		_, err := a.VoidSpeeches(a.Context(), 10)
		a.fine("void speeches", err)
	case roll < 3 && len(known) > 0:
		id := known[a.dice.IntN(len(known))]
		won, err := a.EndSpeech(a.Context(), id, []mediagate.SpeechState{mediagate.SpeechPosted, mediagate.SpeechVoided}[a.dice.IntN(2)])
		if a.fine("end speech", err) && won {
			a.first("the end of %s", id)
		}
	default:
		n := a.newSpeech(a.payer(), mediagate.Micros(a.dice.Int64N(int64(unit(1)))))
		if a.fine("speak", a.OpenSpeech(a.Context(), n, speechLease), mediagate.KindPayment, mediagate.KindUnauthenticated) {
			a.mu.Lock()
			a.speeches = append(a.speeches, n.ID)
			a.mu.Unlock()
		}
	}
}
