package activitytest_test

import (
	"context"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/storage/storagetest"
)

// path is the double in the words of the storage suite.
type path struct {
	*activitytest.Store
	now func() time.Time
}

func (p path) Submit(_ context.Context, n mediagate.NewTask) (string, bool, error) {
	n.Task.Status = mediagate.StatusPending
	p.Add(n.Task)
	return n.Task.ID, false, nil
}

func (p path) Attempts(_ context.Context, taskID string) ([]mediagate.Attempt, error) {
	return p.Store.Attempts(taskID), nil
}

func (p path) SeenChannel(_ context.Context, names []string) error {
	for _, name := range names {
		p.SeeChannel(name, p.now())
	}
	return nil
}

// What the activities' and workflows' tests rest on decides as the databases do.
func TestStoreKeepsThePath(t *testing.T) {
	t.Parallel()
	storagetest.RunPath(t, func(_ *testing.T, now func() time.Time) storagetest.Path {
		return path{activitytest.NewStore(now), now}
	})
}
