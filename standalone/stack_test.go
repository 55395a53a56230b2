package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestStackStopsInReverse(t *testing.T) {
	t.Parallel()
	var got []string
	s := newStack(slog.New(slog.DiscardHandler))
	broken := errors.New("broken")
	for _, name := range []string{"first", "second", "third"} {
		s.push(name, func(context.Context) error {
			got = append(got, name)
			if name == "second" {
				return broken
			}
			return nil
		})
	}
	if err := s.stop(t.Context()); !errors.Is(err, broken) {
		t.Errorf("stop = %v, want the part's error", err)
	}
	if diff := cmp.Diff([]string{"third", "second", "first"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if err := s.stop(t.Context()); err != nil || len(got) != 3 {
		t.Errorf("a second stop did something: %v, %v", err, got)
	}
}

// TestStackKeepsTimeForEveryPart checks that a part that hangs leaves time to stop the others.
func TestStackKeepsTimeForEveryPart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var left time.Duration
		s := newStack(slog.New(slog.DiscardHandler))
		s.push("quick", func(ctx context.Context) error {
			deadline, _ := ctx.Deadline()
			left = time.Until(deadline)
			return ctx.Err()
		})
		s.push("hangs", func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), stopTimeout)
		defer cancel()
		if err := s.stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("stop = %v, want the hanging part's error", err)
		}
		if left != reserve {
			t.Errorf("the last part had %v, want %v", left, reserve)
		}
		if took := time.Since(began); took > stopTimeout {
			t.Errorf("took %v", took)
		}
	})
}

func TestStackReportsTheFirstFailure(t *testing.T) {
	t.Parallel()
	s := newStack(slog.New(slog.DiscardHandler))
	first := errors.New("first")
	s.fail("a", first)
	s.fail("b", errors.New("second")) // must not block
	if got := <-s.failed; !errors.Is(got, first) {
		t.Errorf("failed = %v, want the first", got)
	}
}
