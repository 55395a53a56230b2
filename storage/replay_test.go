package storage_test

import (
	"context"
	"crypto/sha256"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/pgtest"
)

// keyed is a submit with the idempotency key "once" and one body.
func (n tenant) keyed(ctx context.Context, id string) (string, bool, error) {
	return n.Submit(ctx, mediagate.NewTask{
		Task: mediagate.Task{
			ID: id, AccountID: n.account, KeyID: n.key, Model: "m", Type: mediagate.TypeImage, Params: []byte("{}"), Hold: 1,
			DeadlineAt: time.Now().Add(time.Hour),
		},
		IdempotencyKey: "once", Path: "/", BodySHA256: sha256.Sum256([]byte("body")),
	})
}

// The record of a submit ends while its repetition is on its way. That is either a
// repetition or a new submit, but nothing to be refused.
func TestRecordEndsMeanwhile(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	var step atomic.Int64
	now.Store(time.Now().UnixMicro())
	s := openPostgres(t, pgtest.New(t), storage.Config{Now: func() time.Time { return time.UnixMicro(now.Add(step.Load())) }})
	one := newTenant(t, s, "one")
	if _, _, err := one.keyed(t.Context(), "task_first"); err != nil {
		t.Fatal(err)
	}
	if err := one.settle(t.Context(), "task_first"); err != nil { // from now on it stands for a day
		t.Fatal(err)
	}
	now.Add((24*time.Hour - 1500*time.Microsecond).Microseconds())
	step.Store(time.Millisecond.Microseconds()) // between any two looks at the clock
	id, replayed, err := one.keyed(t.Context(), "task_again")
	if err != nil || replayed != (id == "task_first") {
		t.Errorf("%q, replayed %t, %v", id, replayed, err)
	}
}
