package moderation

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/mediagate/mediagate"
)

// Words checks texts against lists.
type Words struct {
	lists atomic.Pointer[Lists]
	large sync.Mutex
}

// NewWords makes a Words with these lists.
func NewWords(l *Lists) *Words {
	w := &Words{}
	w.Replace(l)
	return w
}

// Replace puts other lists in force for later texts.
func (w *Words) Replace(l *Lists) { w.lists.Store(l) }

// largeText is the size from which texts are checked one at a time, since they take many times
// the memory and time of a prompt.
const largeText = 64 << 10

// Check compares the texts with the lists. It never fails.
func (w *Words) Check(_ context.Context, texts []string) (mediagate.Verdict, error) {
	lists := w.lists.Load()
	for _, s := range texts {
		if verdict := w.check(lists, s); verdict.Refused {
			return verdict, nil
		}
	}
	return mediagate.Verdict{}, nil
}

func (w *Words) check(lists *Lists, s string) mediagate.Verdict {
	if len(s) > largeText {
		w.large.Lock()
		defer w.large.Unlock()
	}
	for _, reading := range readings(s) {
		if at, broken := lists.check(read(reading)); broken {
			return mediagate.Verdict{Refused: true, Rule: at.String(), Digest: read(s).digest()}
		}
	}
	return mediagate.Verdict{}
}
