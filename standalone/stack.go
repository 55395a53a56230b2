package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// stack holds the running parts in the order in which they started, and stops them in reverse
// order.
type stack struct {
	logger *slog.Logger
	parts  []part
	// failed receives the error of the first part that ended by itself.
	failed chan error
}

type part struct {
	name string
	stop func(context.Context) error
}

func newStack(logger *slog.Logger) *stack {
	return &stack{logger: logger, failed: make(chan error, 1)}
}

// push adds a running part.
func (s *stack) push(name string, stop func(context.Context) error) {
	s.parts = append(s.parts, part{name: name, stop: stop})
}

// fail reports that a part ended by itself. Later reports are dropped, because the first already
// stops the program.
func (s *stack) fail(name string, err error) {
	select {
	case s.failed <- fmt.Errorf("%s ended: %w", name, err):
	default:
	}
}

// reserve is the time kept for each part further down the stack, so that a part that hangs
// cannot use up the whole timeout.
const reserve = 1500 * time.Millisecond

// stop stops all parts within ctx, the last started first.
func (s *stack) stop(ctx context.Context) error {
	var problems []error
	for i, p := range slices.Backward(s.parts) {
		if err := s.stopPart(ctx, p, time.Duration(i)*reserve); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", p.name, err))
		}
	}
	s.parts = nil
	return errors.Join(problems...)
}

func (s *stack) stopPart(ctx context.Context, p part, keep time.Duration) error {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-keep))
		defer cancel()
	}
	began := time.Now()
	err := p.stop(ctx)
	s.logger.InfoContext(ctx, "stopped", "part", p.name, "took", time.Since(began).String())
	return err
}
