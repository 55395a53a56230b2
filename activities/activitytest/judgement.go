package activitytest

import (
	"context"

	"github.com/mediagate/mediagate"
)

// Judgement reads how far the judging of a task's inputs has come.
func (s *Store) Judgement(ctx context.Context, taskID string) (mediagate.Judgement, error) {
	unlock, err := s.lock(ctx, "Judgement")
	defer unlock()
	if err != nil {
		return mediagate.Judgement{}, err
	}
	r, err := s.record(taskID)
	if err != nil {
		return mediagate.Judgement{}, err
	}
	return r.judgement, nil
}

// StoreJudgement adds to what is stored.
func (s *Store) StoreJudgement(ctx context.Context, taskID string, j mediagate.Judgement) error {
	unlock, err := s.lock(ctx, "StoreJudgement")
	defer unlock()
	if err != nil {
		return err
	}
	r, err := s.record(taskID)
	if err != nil || r.task.Status.Terminal() {
		return err
	}
	r.judgement = r.judgement.With(j)
	return nil
}
