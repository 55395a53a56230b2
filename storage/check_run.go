package storage

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"
)

// checkRow is how far a run is through the transfers: with the old ones, which lie
// before floor or have no position, up to the id scan_after, and once all of those
// are summed up, up to the transfer at the position.
type checkRow struct {
	Run        string
	Cluster    string
	ScanAfter  *string
	Floor      int64
	Position   int64
	TransferID string
	MovedAt    stamp
}

func readCheck(db *gorm.DB, run, lock string) (*checkRow, error) {
	return one[checkRow](db, "SELECT "+columnsOf[checkRow]().text+" FROM ledger_checks WHERE run = ?"+lock, run)
}

// horizon is the first position at which a transfer may still come up. On
// PostgreSQL a position is the number of the transaction that stored the transfer,
// so all transfers before that of the oldest one that runs are closed. SQLite has
// one writer, which numbers them.
func (s *Store) horizon() string {
	if s.lite {
		return "(SELECT COALESCE(MAX(position), 0) + 1 FROM ledger_transfers WHERE position IS NOT NULL)"
	}
	return "CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint)"
}

// cluster names what counts transactions: a dump that is restored into another
// cluster brings positions along that mean nothing there.
func (s *Store) cluster(ctx context.Context) (string, error) {
	if s.lite {
		return "", nil
	}
	row, err := one[struct{ ID string }](s.on(ctx), "SELECT CAST(system_identifier AS text) FROM pg_control_system()")
	var denied *pgconn.PgError
	if errors.As(err, &denied) && denied.Code == notPermitted {
		return "", nil // positions that lie ahead tell as well
	}
	if err != nil {
		return "", err
	}
	return row.ID, nil
}

// notPermitted is PostgreSQL's code for what a role may not do.
const notPermitted = "42501"

// begin finds the sums of the run, or begins them.
func (c *ledgerCheck) begin(ctx context.Context) error {
	cluster, err := c.s.cluster(ctx)
	if err != nil {
		return err
	}
	foreign, err := c.dropForeign(ctx)
	if err != nil {
		return err
	}
	return c.s.write(ctx, "begin the check of the ledger", func(tx *gorm.DB) error {
		fresh, err := exec(tx, `INSERT INTO ledger_checks (run, cluster, scan_after, floor, position, transfer_id, moved_at)
			SELECT ?, ?, '', h.position, h.position, '', ? FROM (SELECT `+c.s.horizon()+` AS position) AS h WHERE true ON CONFLICT DO NOTHING`,
			c.run, cluster, at(c.s.clock()))
		if err != nil {
			return err
		}
		row, err := c.lock(tx)
		if err != nil {
			return err
		}
		now, err := one[struct{ Position int64 }](tx, "SELECT "+c.s.horizon())
		if err != nil {
			return err
		}
		if c.fresh = c.whole || fresh > 0; !foreign && row.Cluster == cluster && row.Position <= now.Position {
			return nil
		}
		c.fresh = true
		return c.anew(tx, cluster)
	})
}

// lock keeps other checks of the run from moving it, and reads how far it is.
func (c *ledgerCheck) lock(tx *gorm.DB) (*checkRow, error) {
	row, err := readCheck(tx, c.run, c.s.forUpdate("ledger_checks"))
	if err == nil && row == nil {
		err = errAbandoned
	}
	return row, err
}

// dropForeign takes the positions from transfers that have one which no
// transaction of this cluster had yet.
func (c *ledgerCheck) dropForeign(ctx context.Context) (found bool, err error) {
	if c.s.lite {
		return false, nil
	}
	for {
		dropped := int64(0)
		err := c.s.write(ctx, "check positions", func(tx *gorm.DB) (err error) {
			dropped, err = exec(tx, `UPDATE ledger_transfers SET position = NULL WHERE id IN (SELECT id FROM ledger_transfers
				WHERE position >= CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS text) AS bigint) ORDER BY position LIMIT ?)`, c.s.checkRows)
			return err
		})
		if err != nil || dropped == 0 {
			return found, err
		}
		found = true
	}
}

// restart begins the sums of the run anew.
func (c *ledgerCheck) restart(ctx context.Context) error {
	cluster, err := c.s.cluster(ctx)
	if err != nil {
		return err
	}
	return c.s.write(ctx, "begin the check of the ledger anew", func(tx *gorm.DB) error {
		if _, err := c.lock(tx); err != nil {
			return err
		}
		return c.anew(tx, cluster)
	})
}

// anew lets a run that is locked begin with nothing.
func (c *ledgerCheck) anew(tx *gorm.DB, cluster string) error {
	for _, table := range kept {
		if _, err := exec(tx, "DELETE FROM "+table+" WHERE run = ?", c.run); err != nil {
			return err
		}
	}
	_, err := exec(tx, `UPDATE ledger_checks SET cluster = ?, scan_after = '', floor = h.position, position = h.position, transfer_id = '', moved_at = ?
		FROM (SELECT `+c.s.horizon()+` AS position) AS h WHERE run = ?`, cluster, at(c.s.clock()), c.run)
	return err
}

// kept are the tables of what a run has found. Who writes there has locked the
// run's row.
var kept = [...]string{"ledger_check_sums", "ledger_check_marks"}

// drop deletes the runs that the condition names, which lock locks.
func (s *Store) drop(tx *gorm.DB, lock, which string, args ...any) error {
	var runs []struct{ Run string }
	if err := read(tx, &runs, "SELECT run FROM ledger_checks WHERE "+which+lock, args...); err != nil {
		return err
	}
	for _, row := range runs {
		for _, table := range append(kept[:], "ledger_checks") {
			if _, err := exec(tx, "DELETE FROM "+table+" WHERE run = ?", row.Run); err != nil {
				return err
			}
		}
	}
	return nil
}

// forget deletes what is stored of the run. It waits for its own last statement, which
// the server may still be undoing.
func (c *ledgerCheck) forget(ctx context.Context) error {
	return c.s.write(ctx, "forget the check of the ledger", func(tx *gorm.DB) error {
		return c.s.drop(tx, c.s.forUpdate("ledger_checks"), "run = ?", c.run)
	})
}

// tidy deletes what crashed checks have left, and of the sums what no cap of a key
// reaches back to any more. Runs that somebody moves stay.
func (c *ledgerCheck) tidy(ctx context.Context) error {
	return c.s.write(ctx, "tidy up after checks of the ledger", func(tx *gorm.DB) error {
		if err := c.s.drop(tx, c.s.skipLocked("ledger_checks"), "run <> ? AND run <> ? AND moved_at < ?", sinceLast, c.run, at(c.s.clock().Add(-abandonedAfter))); err != nil || c.whole {
			return err
		}
		if _, err := c.lock(tx); err != nil {
			return err
		}
		_, err := exec(tx, `DELETE FROM ledger_check_sums AS s WHERE s.run = ? AND s.what = ? AND EXISTS (SELECT 1 FROM keys o JOIN keys p ON p.id = COALESCE(o.purse_id, o.id)
			WHERE o.id = s.key_id AND s.day < `+c.s.microsOf("CASE WHEN p.week_start < p.month_start THEN p.week_start ELSE p.month_start END")+")", c.run, counted)
		return err
	})
}

// part is what a slice goes through: transfers t that are closed, so that each
// statement finds the same ones however much is stored meanwhile.
type part struct {
	transfers condition
	entries   *condition // of old transfers: their entries by id
	next      checkRow
}

// nextPart is what comes after the row; nil where nothing more is closed.
func (s *Store) nextPart(tx *gorm.DB, row checkRow) (*part, error) {
	if row.ScanAfter != nil {
		return s.oldPart(tx, row)
	}
	last, err := s.ahead(tx, row, " AND position < "+s.horizon())
	if err != nil || last == nil {
		return nil, err
	}
	return &part{next: last.of(row), transfers: last.until(row)}, nil
}

// place is where a transfer lies in the order of positions.
type place struct {
	Position int64
	ID       string
}

// ahead is the last of the transfers that a slice after the row has; limit is a
// further condition.
func (s *Store) ahead(tx *gorm.DB, row checkRow, limit string) (*place, error) {
	query := "SELECT position, id FROM ledger_transfers WHERE position >= ? AND (position, id) > (?, ?)" + limit
	from := []any{row.Position, row.Position, row.TransferID}
	last, err := one[place](tx, query+" ORDER BY position, id LIMIT 1 OFFSET ?", append(slices.Clone(from), s.checkRows-1)...)
	if err == nil && last == nil {
		last, err = one[place](tx, query+" ORDER BY position DESC, id DESC LIMIT 1", from...)
	}
	return last, err
}

// of is how far a run is at the place.
func (p place) of(row checkRow) checkRow {
	row.Position, row.TransferID = p.Position, p.ID
	return row
}

// until are the transfers t from the row to the place.
func (p place) until(row checkRow) condition {
	return row.tail().and("t.position <= ? AND (t.position, t.id) <= (?, ?)", p.Position, p.Position, p.ID)
}

// tail are the transfers t that come after the row, with those that are not closed.
func (r checkRow) tail() condition {
	return condition{}.and("t.position >= ? AND (t.position, t.id) > (?, ?)", r.Position, r.Position, r.TransferID)
}

func (s *Store) oldPart(tx *gorm.DB, row checkRow) (*part, error) {
	after := *row.ScanAfter
	last, err := one[struct{ ID string }](tx, "SELECT id FROM ledger_transfers WHERE id > ? ORDER BY id LIMIT 1 OFFSET ?", after, s.checkRows-1)
	if err != nil {
		return nil, err
	}
	p := &part{next: row, transfers: condition{}.after("t.id", after), entries: new(condition{}.after("t.transfer_id", after))}
	p.next.ScanAfter = nil
	if last != nil {
		p.transfers, p.entries = p.transfers.until("t.id", last.ID), new(p.entries.until("t.transfer_id", last.ID))
		p.next.ScanAfter = &last.ID
	}
	p.transfers = p.transfers.and("(t.position IS NULL OR t.position < ?)", row.Floor)
	return p, nil
}

// slice goes through the next part: its sums, its rules and how far it came are
// stored at once. Another check of the same run waits for it, and goes on from there.
func (c *ledgerCheck) slice(ctx context.Context) (more bool, err error) {
	var found []problemRow
	var checked int
	err = c.s.write(ctx, "check a slice of the ledger", func(tx *gorm.DB) error {
		more, found, checked = false, nil, 0
		if err := c.s.goByIndexes(tx); err != nil {
			return err
		}
		row, err := c.lock(tx)
		if err != nil {
			return err
		}
		p, err := c.s.nextPart(tx, *row)
		if err != nil || p == nil {
			return err
		}
		more = true
		if err := c.s.addSums(tx, c.run, p.transfers); err != nil {
			return err
		}
		if err := c.s.markHours(tx, c.run, p.transfers); err != nil {
			return err
		}
		for about, some := range c.asked(*p) {
			if c.whole {
				broken, err := c.s.broken(tx, about, some)
				if err != nil {
					return err
				}
				found = append(found, broken...)
			} else if err := c.s.mark(tx, c.run, about, some); err != nil {
				return err
			}
		}
		if !c.whole {
			touched, err := one[struct{ N int }](tx, "SELECT COUNT(DISTINCT t.task_id) FROM ledger_transfers t WHERE "+p.transfers.text, p.transfers.args...)
			if err != nil {
				return err
			}
			checked = touched.N
		}
		_, err = exec(tx, "UPDATE ledger_checks SET scan_after = ?, position = ?, transfer_id = ?, moved_at = ? WHERE run = ?",
			p.next.ScanAfter, p.next.Position, p.next.TransferID, at(c.s.clock()), c.run)
		return err
	})
	if err != nil {
		return false, err
	}
	c.found, c.checked = append(c.found, found...), c.checked+checked
	return more, nil
}

// asked are the things that the rules are asked about in a part. A task that was
// open when its hold was checked comes up again with the end of that. A whole check
// goes through tasks and speeches by themselves.
func (c *ledgerCheck) asked(p part) map[thing]condition {
	asked := map[thing]condition{aTransfer: p.transfers}
	if p.entries != nil {
		asked[anEntry] = *p.entries
	}
	if !c.whole {
		those := condition{}.and("t.id IN (SELECT t.task_id FROM ledger_transfers t WHERE "+p.transfers.text+")", p.transfers.args...)
		asked[aTask], asked[aSpeech] = those, those
	}
	return asked
}

// open asks the rules about the transfers that are not closed, which belong to no
// slice yet: somebody who stores may be under way for long.
func (c *ledgerCheck) open(ctx context.Context) error {
	var row *checkRow
	for more := true; more; {
		err := c.s.reading(ctx, func(tx *gorm.DB) (err error) {
			if row == nil {
				if row, err = readCheck(tx, c.run, ""); err != nil || row == nil {
					more = false
					return err
				}
			}
			last, err := c.s.ahead(tx, *row, "")
			if more = last != nil; err != nil || last == nil {
				return err
			}
			for about, some := range c.asked(part{transfers: last.until(*row)}) {
				found, err := c.s.broken(tx, about, some)
				if err != nil {
					return err
				}
				c.found = append(c.found, found...)
			}
			if err := read(tx, &c.hours, chosen(aTransfer, last.until(*row))+c.s.hours(), last.until(*row).args...); err != nil {
				return err
			}
			row = new(last.of(*row))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// lookAgain looks at what broke a rule, then or before.
func (c *ledgerCheck) lookAgain(ctx context.Context) error {
	for _, about := range []thing{aTransfer, anEntry, aTask, aSpeech} {
		marked := condition{}.and(keyOf(about)+" IN (SELECT id FROM ledger_check_marks WHERE run = ? AND kind = ?)", c.run, about)
		query, args := c.s.allBroken(about, marked)
		err := c.s.write(ctx, "look again at the ledger", func(tx *gorm.DB) error {
			if err := c.s.goByIndexes(tx); err != nil {
				return err
			}
			if _, err := c.lock(tx); err != nil {
				return err
			}
			marks, err := one[struct{ ID string }](tx, "SELECT id FROM ledger_check_marks WHERE run = ? AND kind = ? LIMIT 1", c.run, about)
			if err != nil || marks == nil {
				return err
			}
			_, err = exec(tx, "DELETE FROM ledger_check_marks WHERE run = ? AND kind = ? AND id NOT IN (SELECT mark FROM ("+query+") AS broken)",
				append([]any{c.run, about}, args...)...)
			return err
		})
		if err != nil {
			return err
		}
		err = c.s.reading(ctx, func(tx *gorm.DB) error {
			found, err := c.s.broken(tx, about, marked)
			c.found = append(c.found, found...)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
