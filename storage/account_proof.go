package storage

import (
	"context"

	"gorm.io/gorm/clause"

	"github.com/mediagate/mediagate"
)

type proofRow struct {
	Made    string
	Found   string
	Channel string
	TaskID  string
	N       int
	At      stamp
}

// TableName tells GORM.
func (proofRow) TableName() string { return "account_proofs" }

// ProveAccount records that two fingerprints are of one vendor account; fresh
// tells whether that was news.
func (s *Store) ProveAccount(ctx context.Context, p mediagate.AccountProof) (fresh bool, err error) {
	row := proofRow{Made: p.Made, Found: p.Found, Channel: p.Channel, TaskID: p.TaskID, N: p.N, At: at(s.clock())}
	result := s.on(ctx).Clauses(clause.OnConflict{DoNothing: true}).Create(&row)
	return result.RowsAffected > 0, dbError(result.Error, "record the proof of an account")
}

// SameAccount lists the fingerprints that are proven to be of the fingerprint's
// account, by one proof or several that lead to each other, and itself.
func (s *Store) SameAccount(ctx context.Context, fingerprint string) ([]string, error) {
	return s.texts(ctx, "read the proofs of an account", `WITH RECURSIVE same (fingerprint) AS (
			SELECT CAST(? AS text)
			UNION
			SELECT CASE WHEN p.made = same.fingerprint THEN p.found ELSE p.made END
			FROM same JOIN account_proofs AS p ON p.made = same.fingerprint OR p.found = same.fingerprint)
		SELECT fingerprint FROM same ORDER BY fingerprint`, fingerprint)
}

// AwaitAccounts lists the fingerprints of the rows that wait under a channel's
// name.
func (s *Store) AwaitAccounts(ctx context.Context, channel string) ([]string, error) {
	return s.texts(ctx, "list the accounts of waiting rows",
		"SELECT DISTINCT fingerprint FROM awaits WHERE channel = ? ORDER BY fingerprint", channel)
}
