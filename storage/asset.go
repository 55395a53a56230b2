package storage

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// MadeBy finds the account's completed task that made the asset with the vendor's id, and the
// asset's position among the task's assets of that kind. The primary key of the table assets
// serves the search. Returns KindNotFound, also for an asset of another account, and for an
// asset whose task was erased or removed.
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

// noteAssets stores the assets of a task that later requests may name by the vendor's ids. It
// runs in the transaction that completes the task. If two tasks have the same asset, the first
// task keeps it: the vendor showed it to the second task without making it again.
func noteAssets(tx *gorm.DB, of mediagate.Task) error {
	ids := of.Made.IDs(of.Results)
	for _, kind := range slices.Sorted(maps.Keys(ids)) {
		positions := make(map[string]int, len(ids[kind]))
		for position, id := range slices.Backward(ids[kind]) { // of an id that occurs twice, the first position
			positions[id] = position
		}
		// An empty id belongs to a song without a file, which later requests cannot use. Its place
		// in the list still counts, so the positions of the other songs stay right.
		delete(positions, "")
		// Sorted, so that two tasks with the same assets do not deadlock.
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
