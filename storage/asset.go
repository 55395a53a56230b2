package storage

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// MadeBy finds the completed task of the account that made what the vendor's id
// names. Returns KindNotFound, also for someone else's.
func (s *Store) MadeBy(
	ctx context.Context, accountID string, kind mediagate.MadeKind, vendorID string,
) (mediagate.MadeAt, error) {
	made, err := one[mediagate.MadeAt](s.on(ctx), `SELECT task_id, position FROM assets
		WHERE account_id = ? AND kind = ? AND vendor_id = ?`, accountID, kind, vendorID)
	if err != nil || made == nil {
		return mediagate.MadeAt{}, cmp.Or(dbError(err, "read asset"), notFound(string(kind), vendorID))
	}
	return *made, nil
}

// noteAssets notes what the task made that later requests may name by the
// vendor's ids. Of two tasks with the same the first one is it: the other
// shows what the first made.
func noteAssets(tx *gorm.DB, of mediagate.Task) error {
	ids := of.Made.IDs(of.Results)
	for _, kind := range slices.Sorted(maps.Keys(ids)) {
		positions := make(map[string]int, len(ids[kind]))
		for position, id := range slices.Backward(ids[kind]) { // of one that comes twice, its first
			positions[id] = position
		}
		delete(positions, "")
		// In one order by all: another task may have made the same.
		for _, id := range slices.Sorted(maps.Keys(positions)) {
			if _, err := exec(tx, `INSERT INTO assets (account_id, kind, vendor_id, task_id, position)
				VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
				of.AccountID, kind, id, of.ID, positions[id]); err != nil {
				return err
			}
		}
	}
	return nil
}
