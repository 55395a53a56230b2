package activitytest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
)

// RemoveRows removes none: this store has but tasks, which the suites of package
// storage see removed.
func (s *Store) RemoveRows(ctx context.Context, _ mediagate.Removal, _ time.Time, _ string) (mediagate.RemovedSlice, error) {
	return under(ctx, s, "RemoveRows", func() (mediagate.RemovedSlice, error) { return mediagate.RemovedSlice{}, nil })
}

// RemoveSessions removes none, for the same reason.
func (s *Store) RemoveSessions(ctx context.Context) (int, error) {
	return under(ctx, s, "RemoveSessions", func() (int, error) { return 0, nil })
}

// Unnamed returns objects of tasks that are gone, or have ended and do not show them.
func (s *Store) Unnamed(ctx context.Context, keys []string) ([]string, error) {
	return under(ctx, s, "Unnamed", func() ([]string, error) {
		return slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
			id, _, _ := strings.Cut(strings.TrimPrefix(key, mediagate.ResultsFolder), "/")
			e := s.tasks[id]
			return e != nil && (e.open() || slices.ContainsFunc(e.state.Results, func(r mediagate.Result) bool { return r.Key == key }))
		}), nil
	})
}

// NoteRemoval notes how far retention is.
func (s *Store) NoteRemoval(ctx context.Context, kind mediagate.Removal, mark string, removed int, ended bool) error {
	return s.run(ctx, "NoteRemoval", func() error {
		if s.removals == nil {
			s.removals = map[mediagate.Removal]mediagate.RemovalState{}
		}
		state := s.removals[kind]
		state.Mark, state.Removed = mark, state.Removed+int64(removed)
		if ended {
			state.EndedAt = s.clock()
		}
		s.removals[kind] = state
		return nil
	})
}

// RemovalStates tells how far retention is.
func (s *Store) RemovalStates(ctx context.Context) (map[mediagate.Removal]mediagate.RemovalState, error) {
	return under(ctx, s, "RemovalStates", func() (map[mediagate.Removal]mediagate.RemovalState, error) { return maps.Clone(s.removals), nil })
}
