package moderation

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/mediagate/mediagate"
)

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
func (w *Words) Judge(_ context.Context, texts []string) (mediagate.Verdict, error) {
	lists := w.lists.Load()
	for _, s := range texts {
		if verdict := w.judge(lists, s); verdict.Refused {
			return verdict, nil
		}
	}
	return mediagate.Verdict{}, nil
}

func (w *Words) judge(lists *Lists, s string) mediagate.Verdict {
	if len(s) > largeText {
		w.large.Lock()
		defer w.large.Unlock()
	}
	for _, reading := range readings(s) {
		if at, broken := lists.judge(read(reading)); broken {
			return mediagate.Verdict{Refused: true, Rule: at.String(), Digest: read(s).digest()}
		}
	}
	return mediagate.Verdict{}
}
