package storage

import (
	"context"
	"strings"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// Usage is counted where money moves: the transfer that ends a hold says what it
// was about, and the statement after it adds that to the sums of its hour and
// day. So the sums follow from the ledger alone, whatever becomes of the task.

// usageSumKey has the columns that name a row of usage_sums. figures are those that add up: the
// first three are money, the others numbers of tasks.
const usageSumKey = "account_id, span, begins_at, key_id, model, provider"

var figures = []string{"cost", "released", "taken", "completed", "failed", "cancelled"}

const vendorSumKey = "account_id, begins_at, key_id, model, provider, unit"

// eachFigure writes a text once for each figure, whose name stands for @.
func eachFigure(text, separator string) string {
	return strings.Join(convert(figures, func(figure string) string { return strings.ReplaceAll(text, "@", figure) }), separator)
}

// sumsOf are the keys and figures of usage_sums of the ends that the condition on
// e names. What was held is counted as taken in the hour and day of the hold, and
// as released in those of its end.
func (s *Store) sumsOf(condition string) string {
	of := func(span string, begin func(column string) string) string {
		return "SELECT account_id, '" + span + "' AS span, " + begin("ended_at") + ` AS begins_at, key_id, model, provider,
				cost, hold AS released, 0 AS taken, ` + countByStatus + ` FROM ends
			UNION ALL SELECT account_id, '` + span + "', " + begin("held_at") + `, key_id, model, provider,
				0, 0, hold, 0, 0, 0 FROM ends`
	}
	return `WITH ends AS (SELECT e.account_id, e.key_id, e.model, e.provider, e.status, e.at AS ended_at, h.at AS held_at,
			CASE e.kind WHEN 'post' THEN e.amount ELSE 0 END AS cost, h.amount AS hold
		FROM ledger_transfers e JOIN ledger_transfers h ON h.task_id = e.task_id AND h.kind = 'hold'
		WHERE e.kind IN ('post', 'void') AND ` + condition + `)
		SELECT ` + usageSumKey + ", " + eachFigure("CAST(SUM(@) AS bigint) AS @", ", ") + ` FROM (
			` + of("hour", s.hourOf) + " UNION ALL " + of("day", s.dayOf) + `) AS counted
		WHERE true GROUP BY ` + usageSumKey
}

// count adds the ends that the condition names to the sums. Rows are locked in
// the order of their keys, before those of keys and accounts, so that nobody
// waits for another in a circle.
func (s *Store) count(tx *gorm.DB, condition string, args ...any) error {
	_, err := exec(tx, "INSERT INTO usage_sums ("+usageSumKey+", "+eachFigure("@", ", ")+") "+s.sumsOf(condition)+
		" ORDER BY "+usageSumKey+" ON CONFLICT ("+usageSumKey+`)
		DO UPDATE SET `+eachFigure("@ = usage_sums.@ + excluded.@", ", "), args...)
	return err
}

// hourOf and dayOf are the beginnings of the hour and the day of a time, in UTC.
func (s *Store) hourOf(column string) string {
	if s.lite {
		return column + " - " + column + " % 3600000000"
	}
	return "date_trunc('hour', " + column + ", 'UTC')"
}

func (s *Store) dayOf(column string) string {
	if s.lite {
		return column + " - " + column + " % 86400000000"
	}
	return "date_trunc('day', " + column + ", 'UTC')"
}

// skipLocked locks the rows of a SELECT, but for those that somebody else has.
func (s *Store) skipLocked(of string) string {
	if s.lite {
		return ""
	}
	return s.forUpdate(of) + " SKIP LOCKED"
}

// noteVendorCharge stores what the vendor says that the attempt has cost us. What
// was stated first counts.
func noteVendorCharge(tx *gorm.DB, taskID string, n int, o *mediagate.Outcome, now stamp) error {
	if o == nil || o.VendorCharge == nil {
		return nil
	}
	amount, ok := o.VendorCharge.Micros()
	if !ok { // of no adapter of ours
		return nil
	}
	_, err := exec(tx, `UPDATE attempts SET vendor_amount = ?, vendor_unit = ?, vendor_uncounted_at = ?
		WHERE task_id = ? AND n = ? AND vendor_amount IS NULL`, amount, o.VendorCharge.Unit, now, taskID, n)
	return err
}

// chargesOf are the keys of vendor_sums and the amounts of attempts a that are
// not counted.
func (s *Store) chargesOf(condition string) string {
	return "SELECT t.account_id, " + s.hourOf("a.vendor_uncounted_at") + ` AS begins_at, t.key_id, t.model, a.provider,
			a.vendor_unit AS unit, a.vendor_amount AS amount
		FROM attempts a JOIN tasks t ON t.id = a.task_id
		WHERE a.vendor_uncounted_at IS NOT NULL AND ` + condition
}

// CountVendorCharges adds what vendors charged to the sums, as many charges as limit
// says. It tells how many there were.
func (s *Store) CountVendorCharges(ctx context.Context, limit int) (counted int, err error) {
	type chargedRow struct {
		TaskID string
		N      int
	}
	mine := "(a.task_id, a.n) IN (SELECT value ->> 0, CAST(value ->> 1 AS integer) FROM json_array_elements(CAST(? AS json)))"
	if s.lite {
		mine = "(a.task_id, a.n) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))"
	}
	err = s.write(ctx, "count what vendors charged", func(tx *gorm.DB) error {
		counted = 0
		var rows []chargedRow
		if err := read(tx, &rows, `SELECT a.task_id, a.n FROM attempts a WHERE a.vendor_uncounted_at IS NOT NULL
			ORDER BY a.vendor_uncounted_at LIMIT ?`+s.skipLocked("a"), limit); err != nil || len(rows) == 0 {
			return err
		}
		counted = len(rows)
		list, err := jsonText(convert(rows, func(r chargedRow) []any { return []any{r.TaskID, r.N} }))
		if err != nil {
			return err
		}
		if _, err := exec(tx, "INSERT INTO vendor_sums ("+vendorSumKey+`, amount)
			SELECT `+vendorSumKey+", CAST(SUM(amount) AS bigint) FROM ("+s.chargesOf(mine)+`) AS charged
			WHERE true GROUP BY `+vendorSumKey+" ORDER BY "+vendorSumKey+`
			ON CONFLICT (`+vendorSumKey+") DO UPDATE SET amount = vendor_sums.amount + excluded.amount", list); err != nil {
			return err
		}
		_, err = exec(tx, "UPDATE attempts AS a SET vendor_uncounted_at = NULL WHERE "+mine, list)
		return err
	})
	return counted, err
}
