package storage

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// The ledger is checked in slices, each of a bounded number of rows: no statement
// of a check sees one moment of the database for long, which would keep its past
// from being vacuumed. What a rule says of one transfer, task or speech is asked in
// one statement. What all transfers of an account come to is summed up slice by
// slice, as far as transfers are closed (see part); balances are then compared, at one
// moment for each few accounts, with those sums and the few transfers after them.
//
// A whole check begins with nothing. One of what is new since the last goes on
// from the sums of that; what broke a rule is marked, and looked at again until
// it no longer does.

const (
	// maxProblems bounds the report of one rule.
	maxProblems = 100
	// checkRows are the transfers, tasks or speeches of a slice, checkAccounts its
	// accounts.
	checkRows     = 10_000
	checkAccounts = 500
	// sinceLast is the run of all checks of what is new.
	sinceLast = "last"
	// abandonedAfter is after how long the sums of a whole check belong to nobody.
	abandonedAfter = 24 * time.Hour
)

// CheckLedger proves all rules of the ledger, of all that there is, while it is in
// use. Each problem is a line for people.
func (s *Store) CheckLedger(ctx context.Context) (mediagate.LedgerReport, error) {
	for {
		c := &ledgerCheck{s: s, run: s.newID("check_"), whole: true, fresh: true}
		err := c.prove(ctx)
		if left := c.forget(context.WithoutCancel(ctx)); err == nil {
			err = left
		}
		if errors.Is(err, errAbandoned) && ctx.Err() == nil {
			continue // by a clock that leapt
		}
		return c.report(err)
	}
}

// errAbandoned says that somebody took the sums of a check for a crashed one's.
var errAbandoned = conflict("the sums of the check are gone")

// CheckLedgerSince proves the rules of the transfers that were stored since the
// last such check and of the tasks and speeches that they are about, and the
// balances of all accounts. The first one goes through everything. One that is cut
// off is gone on with by the next; several at once share the work. A transfer that
// somebody changed after it was checked is found by CheckLedger alone.
func (s *Store) CheckLedgerSince(ctx context.Context) (mediagate.LedgerReport, error) {
	c := &ledgerCheck{s: s, run: sinceLast}
	return c.report(c.prove(ctx))
}

// ledgerCheck is one check.
type ledgerCheck struct {
	s       *Store
	run     string
	whole   bool
	fresh   bool // its sums were begun by itself
	checked int
	found   []problemRow
	hours   []hourRow // in which transfers count that are not closed
}

// prove goes through everything.
func (c *ledgerCheck) prove(ctx context.Context) error {
	if err := c.begin(ctx); err != nil {
		return err
	}
	if c.whole {
		for _, about := range []thing{aTask, aSpeech} {
			if err := c.things(ctx, about); err != nil {
				return err
			}
		}
	}
	if err := c.balances(ctx); err != nil {
		return err
	}
	if err := c.open(ctx); err != nil {
		return err
	}
	if !c.whole {
		if err := c.lookAgain(ctx); err != nil {
			return err
		}
	}
	if err := c.usage(ctx); err != nil {
		return err
	}
	return c.tidy(ctx)
}

// balances sums the transfers up and compares the accounts with the sums.
func (c *ledgerCheck) balances(ctx context.Context) error {
	for {
		for more := true; more; {
			var err error
			if more, err = c.slice(ctx); err != nil {
				return err
			}
		}
		found, checked, complete, err := c.accounts(ctx)
		switch {
		case err != nil:
			return err
		case !complete: // another check has begun the sums anew meanwhile
			continue
		case len(found) > 0 && !c.fresh:
			// The sums may be of what was changed since, so that nothing is said on
			// their word.
			c.fresh = true
			if err := c.restart(ctx); err != nil {
				return err
			}
		default:
			c.found = append(c.found, found...)
			c.checked += checked
			return nil
		}
	}
}

// report renders what was found.
func (c *ledgerCheck) report(err error) (mediagate.LedgerReport, error) {
	if err != nil {
		return mediagate.LedgerReport{}, dbError(err, "check ledger")
	}
	slices.SortStableFunc(c.found, func(a, b problemRow) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Found, b.Found))
	})
	c.found = slices.Compact(c.found) // a task may come up with its hold and with the end of that
	report := mediagate.LedgerReport{OK: len(c.found) == 0, Checked: c.checked, Problems: []string{}}
	told := map[int]int{}
	for _, row := range c.found {
		if told[row.Rule]++; told[row.Rule] <= maxProblems {
			report.Problems = append(report.Problems, fmt.Sprintf(textOf(row.Rule), row.ID, row.Found.Number(), row.Expected.Number()))
		}
	}
	return report, nil
}

func textOf(number int) string {
	switch number {
	case hourRule:
		return "usage of %s is %s, by the ledger %s"
	case dayRule:
		return "usage of %s is %s, by its hours %s"
	default:
		return rules[number].text
	}
}

// reading runs f on one snapshot, of which no more than a slice is to be read.
func (s *Store) reading(ctx context.Context, f func(tx *gorm.DB) error) error {
	return s.on(ctx).Transaction(func(tx *gorm.DB) error {
		if err := s.goByIndexes(tx); err != nil {
			return err
		}
		return f(tx)
	}, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
}

// goByIndexes keeps PostgreSQL from reading a whole table for a few thousand of its
// rows, for the rest of the transaction: that would be faster in a small one, and
// hold on longer and longer in one that grows.
func (s *Store) goByIndexes(tx *gorm.DB) error {
	if s.lite {
		return nil
	}
	_, err := exec(tx, "SELECT set_config('enable_seqscan', 'off', true), set_config('enable_mergejoin', 'off', true), set_config('enable_hashjoin', 'off', true)")
	return err
}

// things asks the rules about all tasks or speeches.
func (c *ledgerCheck) things(ctx context.Context, about thing) error {
	table := tableOf[about]
	for after, more := "", true; more; {
		err := c.s.reading(ctx, func(tx *gorm.DB) error {
			last, err := one[struct{ ID string }](tx, "SELECT id FROM "+table+" WHERE id > ? ORDER BY id LIMIT 1 OFFSET ?", after, c.s.checkRows-1)
			if err != nil {
				return err
			}
			some := condition{}.after("t.id", after)
			if more = last != nil; more {
				some = some.until("t.id", last.ID)
				after = last.ID
			}
			counted, err := one[struct{ N int }](tx, "SELECT COUNT(*) FROM "+table+" t WHERE "+some.text, some.args...)
			if err != nil {
				return err
			}
			c.checked += counted.N
			found, err := c.s.broken(tx, about, some)
			c.found = append(c.found, found...)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// accounts compares the accounts with the sums of their transfers. It is not
// complete when the sums are not.
func (c *ledgerCheck) accounts(ctx context.Context) (found []problemRow, checked int, complete bool, err error) {
	for after, more := "", true; more; {
		err := c.s.reading(ctx, func(tx *gorm.DB) error {
			row, err := readCheck(tx, c.run, "")
			if err != nil {
				return err
			}
			if complete = row != nil && row.ScanAfter == nil; !complete {
				more = false
				return nil
			}
			last, err := one[struct{ ID string }](tx, "SELECT id FROM accounts WHERE id > ? ORDER BY id LIMIT 1 OFFSET ?", after, min(checkAccounts, c.s.checkRows)-1)
			if err != nil {
				return err
			}
			of := func(column string) condition {
				some := condition{}.after(column, after)
				if last != nil {
					some = some.until(column, last.ID)
				}
				return some
			}
			if !c.s.lite { // sums are joined with each other, which have no index
				if _, err := exec(tx, "SELECT set_config('enable_hashjoin', 'on', true)"); err != nil {
					return err
				}
			}
			rows, err := c.s.brokenAccounts(tx, *row, of)
			if err != nil {
				return err
			}
			accounts, keys := of("id"), of("account_id")
			counted, err := one[struct{ N int }](tx, "SELECT (SELECT COUNT(*) FROM accounts WHERE "+accounts.text+") + (SELECT COUNT(*) FROM keys WHERE "+keys.text+")",
				append(slices.Clone(accounts.args), keys.args...)...)
			if err != nil {
				return err
			}
			found, checked = append(found, rows...), checked+counted.N
			if more = last != nil; more {
				after = last.ID
			}
			return nil
		})
		if err != nil {
			return nil, 0, false, err
		}
	}
	return found, checked, complete, nil
}
