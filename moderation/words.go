package moderation

import (
	"context"
	"sync"
	"sync/atomic"
)

// Refusal says why a text was refused, without the text.
type Refusal struct {
	Rule   string   // the list's file and line, or that it was the endpoint
	Digest [32]byte // SHA-256 of the text as it is compared
}

// Verdict is what came of judging. The zero value lets the texts through.
type Verdict struct {
	Refusal *Refusal
	// Unjudged is why nobody judged the texts, which pass all the same by the
	// operator's wish.
	Unjudged error
}

// Words judges by lists.
type Words struct {
	lists atomic.Pointer[Lists]
	large sync.Mutex
}

// NewWords makes a judge by these lists.
func NewWords(l *Lists) *Words {
	w := &Words{}
	w.Replace(l)
	return w
}

// Replace puts other lists in force, for texts that come from now on.
func (w *Words) Replace(l *Lists) { w.lists.Store(l) }

// largeText is a text of which one is judged at a time: what it takes of memory
// and time is many times a prompt's.
const largeText = 64 << 10

// Judge compares the texts with the lists. It never fails.
func (w *Words) Judge(_ context.Context, texts []string) (Verdict, error) {
	lists := w.lists.Load()
	for _, s := range texts {
		if refusal := w.judge(lists, s); refusal != nil {
			return Verdict{Refusal: refusal}, nil
		}
	}
	return Verdict{}, nil
}

func (w *Words) judge(lists *Lists, s string) *Refusal {
	if len(s) > largeText {
		w.large.Lock()
		defer w.large.Unlock()
	}
	for _, reading := range readings(s) {
		if at, broken := lists.judge(read(reading)); broken {
			return &Refusal{Rule: at.String(), Digest: read(s).digest()}
		}
	}
	return nil
}
