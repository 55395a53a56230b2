package storage

import (
	"context"
	"maps"
	"slices"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// assetRow says which task of an account made what a vendor's id names.
type assetRow struct {
	AccountID string
	Kind      mediagate.MadeKind
	VendorID  string
	TaskID    string
	Position  int
}

// MadeBy finds the completed task of the account that made what the vendor's id
// names. Returns KindNotFound, also for someone else's.
func (s *Store) MadeBy(ctx context.Context, accountID string, kind mediagate.MadeKind, vendorID string) (mediagate.MadeAt, error) {
	row, err := one[assetRow](s.on(ctx), "SELECT "+columnsOf[assetRow]().text+" FROM assets WHERE account_id = ? AND kind = ? AND vendor_id = ?",
		accountID, kind, vendorID)
	if err != nil {
		return mediagate.MadeAt{}, dbError(err, "read asset")
	}
	if row == nil {
		return mediagate.MadeAt{}, notFound(string(kind), vendorID)
	}
	return mediagate.MadeAt{TaskID: row.TaskID, Index: row.Position}, nil
}

// noteAssets notes what the task made that later requests may name by the
// vendor's ids. Of two tasks with the same the first one is it: the other
// shows what the first made.
func noteAssets(tx *gorm.DB, task mediagate.Task) error {
	ids := task.Made.IDs(task.Results)
	for _, kind := range slices.Sorted(maps.Keys(ids)) {
		positions := make(map[string]int, len(ids[kind]))
		for position, id := range slices.Backward(ids[kind]) { // of one that comes twice, its first
			positions[id] = position
		}
		for _, id := range slices.Sorted(maps.Keys(positions)) { // in one order by all: another task may have made the same
			if id == "" {
				continue
			}
			if _, err := exec(tx, `INSERT INTO assets (account_id, kind, vendor_id, task_id, position) VALUES (?, ?, ?, ?, ?)
					ON CONFLICT DO NOTHING`, task.AccountID, kind, id, task.ID, positions[id]); err != nil {
				return err
			}
		}
	}
	return nil
}
