package storage

import (
	"context"
	"fmt"
	"time"

	"github.com/mediagate/mediagate"
)

// A cancelled task is not paid for, and its job may run on at a vendor that cannot stop it.
// As long as it may, its attempt is abandoned. Those attempts are counted where somebody
// asks, in the rows themselves: there is no counter that could be wrong. A submit that
// waits for its account's row does not see those that were abandoned meanwhile, so as many
// may be too many as submits of an account write at once.

// abandoned selects the abandoned attempts l of cancelled tasks lt of an account. One that
// an operator gave up is none: that its job runs on is not the client's doing.
func abandoned(what, account string) string {
	return "(SELECT " + what + " FROM attempts AS l JOIN tasks AS lt ON lt.id = l.task_id WHERE l.state = 'abandoned' AND l.given_up_at IS NULL AND lt.status = 'cancelled' AND l.account_id = " + account
}

const (
	abandonedJobs = "COUNT(*)"
	abandonedCost = "CAST(COALESCE(SUM(lt.hold), 0) AS bigint)"
)

// unpaidRetry is when a client whose account has too much unpaid may try again: jobs end
// within minutes.
const unpaidRetry = time.Minute

// Abandoned tells of the jobs of an account's cancelled tasks that may still run.
func (s *Store) Abandoned(ctx context.Context, accountID string) (mediagate.Abandoned, error) {
	row, err := one[mediagate.Abandoned](s.on(ctx), "SELECT jobs, cost FROM "+abandoned(abandonedJobs+" AS jobs, "+abandonedCost+" AS cost", "?")+") AS of_account", accountID)
	if err != nil || row == nil {
		return mediagate.Abandoned{}, dbError(err, "count abandoned jobs")
	}
	return *row, nil
}

// checkUnpaid refuses another task of an account of whose abandoned jobs more is unpaid
// than may be.
func (s *Store) checkUnpaid(ctx context.Context, account accountRow) error {
	limit := account.limits().Or(s.defaults).Unpaid
	if limit == nil {
		return nil
	}
	have, err := s.Abandoned(ctx, account.ID)
	if err != nil || have.Cost <= *limit {
		return err
	}
	return &mediagate.Error{
		Kind: mediagate.KindRateLimited, Code: "rate_limited", RetryAfter: unpaidRetry,
		Message: fmt.Sprintf("too many requests: %d jobs of cancelled tasks may still run and are not paid for; their cost of %s is above the account's unpaid of %s",
			have.Jobs, have.Cost, *limit),
	}
}
