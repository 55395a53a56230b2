package storage

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// forever is the end of a span of time that has none.
var forever = time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)

// bounds returns the beginning and the end of a span of time, either of which may be left open.
func bounds(from, to time.Time) (time.Time, time.Time) {
	if from.IsZero() {
		from = time.Unix(0, 0)
	}
	if to.IsZero() || to.After(forever) {
		to = forever
	}
	return from.UTC(), to.UTC()
}

// stretch is a part of a span of time.
type stretch struct{ from, to time.Time }

// cover divides a span of time into whole days, the whole hours before and after them, and the parts
// of hours at both ends. For these parts the ledger itself is read.
//
// Example: from Monday 22:30 to Thursday 01:15. The whole days are Tuesday and Wednesday, the
// whole hours are Monday 23:00 and Thursday 00:00, and the rest are the half hour to 23:00 and the
// quarter after 01:00.
func cover(from, to time.Time) (days, hours, rest []stretch) {
	add := func(list *[]stretch, from, to time.Time) {
		if from.Before(to) {
			*list = append(*list, stretch{from, to})
		}
	}
	// divide returns the whole units of a stretch, and adds what is left at both ends to the list. If
	// there is no whole unit, all of the stretch is left.
	divide := func(list *[]stretch, s stretch, unit time.Duration) (whole stretch) {
		whole = stretch{ceil(s.from, unit), s.to.Truncate(unit)}
		if !whole.from.Before(whole.to) {
			add(list, s.from, s.to)
			return stretch{}
		}
		add(list, s.from, whole.from)
		add(list, whole.to, s.to)
		return whole
	}
	inHours := divide(&rest, stretch{from, to}, time.Hour)
	inDays := divide(&hours, inHours, day)
	add(&days, inDays.from, inDays.to)
	return days, hours, rest
}

const day = 24 * time.Hour

// ceil rounds t up to the beginning of a unit.
func ceil(t time.Time, unit time.Duration) time.Time {
	if whole := t.Truncate(unit); whole.Before(t) {
		return whole.Add(unit)
	}
	return t
}

// usageKey identifies a row of usage.
type usageKey struct {
	Day       stamp
	AccountID string
	KeyID     string
	Model     string
	Provider  string
}

// usageRow is a row of usage.
type usageRow struct {
	usageKey
	Cost mediagate.Micros
	mediagate.UsageTasks
}

func (r usageRow) usage() mediagate.Usage {
	return mediagate.Usage{
		Day:       r.Day.Time,
		AccountID: r.AccountID,
		KeyID:     r.KeyID,
		Model:     r.Model,
		Provider:  r.Provider,
		Cost:      r.Cost,
		Tasks:     r.UsageTasks,
	}
}

// usageColumns are the columns of usageKey, each with the expression that stands for it if usage is not
// grouped by it.
var usageColumns = []struct {
	by         mediagate.UsageBy
	name, none string
}{
	{mediagate.ByDay, "day", "NULL"},
	{mediagate.ByAccount, "account_id", "''"},
	{mediagate.ByKey, "key_id", "''"},
	{mediagate.ByModel, "model", "''"},
	{mediagate.ByProvider, "provider", "''"},
}

// gathering builds a query about usage. Its places are SELECTs, each of which finds a part of the
// answer. They are read in one statement, and so from one snapshot.
//
// An amount is in one place only: in a sum, in the ledger of the rest of an hour, or in an open
// task or speech.
type gathering struct {
	filter mediagate.UsageFilter
	places statement
}

// from adds a place: a SELECT of all usageColumns and the figures that ends in a WHERE clause.
func (g *gathering) from(query string, args ...any) {
	// Every place has parameters, so without any this is the first place.
	if len(g.places.args) > 0 {
		g.places.say(" UNION ALL ")
	}
	g.places.with(query, args...)
	only := func(column, value string) {
		if value != "" {
			g.places.with(" AND "+column+" = ?", value)
		}
	}
	only("account_id", g.filter.AccountID)
	only("key_id", g.filter.KeyID)
	only("model", g.filter.Model)
}

// statement returns the query that sums the figures, grouped by the columns of the filter and by the
// others.
//
// Columns that are not grouped by are selected as constants, so the result always has the same
// columns. The limit is one row more than the caller wants, to see whether there are more.
func (g *gathering) statement(others, figures []string) *statement {
	var selected, grouped []string
	for _, c := range usageColumns {
		if slices.Contains(g.filter.By, c.by) {
			selected, grouped = append(selected, c.name), append(grouped, c.name)
		} else {
			selected = append(selected, c.none)
		}
	}
	selected, grouped = append(selected, others...), append(grouped, others...)
	for _, figure := range figures {
		selected = append(selected, "CAST(COALESCE(SUM("+figure+"), 0) AS bigint)")
	}
	sum := (&statement{}).say("SELECT ", strings.Join(selected, ", "), " FROM (")
	sum.with(g.places.text.String(), g.places.args...).say(") AS gathered")
	if list := strings.Join(grouped, ", "); list != "" {
		sum.say(" GROUP BY ", list, " ORDER BY ", list)
	}
	return sum.with(" LIMIT ?", g.filter.Limit+1)
}

// countByStatus are the columns that count the end of a task by its status.
const countByStatus = `CASE status WHEN 'completed' THEN 1 ELSE 0 END AS completed,
		CASE status WHEN 'failed' THEN 1 ELSE 0 END AS failed,
		CASE status WHEN 'cancelled' THEN 1 ELSE 0 END AS cancelled`

// Usage sums what was used, and reports whether there are more rows than the filter allows. Without By
// there is one row, of zeros if nothing was used. The vendors' charges are those of the hours that
// begin within the span of time.
func (s *Store) Usage(ctx context.Context, f mediagate.UsageFilter) (usage []mediagate.Usage, hasMore bool, err error) {
	from, to := bounds(f.From, f.To)
	figures := []string{"cost", "pending", "processing", "completed", "failed", "cancelled"}
	sum := s.gatherUsage(f, from, to).statement(nil, figures)
	var rows []usageRow
	if err := read(s.on(ctx), &rows, sum.text.String(), sum.args...); err != nil {
		return nil, false, dbError(err, "read usage")
	}
	usage = convert(rows, usageRow.usage)
	cut := false // a row of usage may have several charges, so that the charges reach the limit sooner
	if slices.Contains(f.By, mediagate.ByProvider) {
		charges, err := s.vendorCharges(ctx, f)
		if err != nil {
			return nil, false, err
		}
		cut = len(charges) > f.Limit
		usage = withCharges(usage, charges)
	}
	usage, hasMore = page(usage, f.Limit)
	return usage, hasMore || cut, nil
}

// gatherUsage gathers the sums of days and hours, the ledger for parts of hours, and open tasks and
// speeches.
//
// usage_sums has the primary key (account_id, span, begins_at, ...) and the index usage_sums_time
// for all accounts. Rows that count no ended task only record what was held, and are left out.
func (s *Store) gatherUsage(f mediagate.UsageFilter, from, to time.Time) *gathering {
	g := &gathering{filter: f}
	days, hours, rest := cover(from, to)
	sums := func(span string, parts []stretch) {
		for _, part := range parts {
			g.from("SELECT "+s.dayOf("begins_at")+` AS day, account_id, key_id, model, provider,
				cost, 0 AS pending, 0 AS processing, completed, failed, cancelled
				FROM usage_sums
				WHERE span = '`+span+`' AND begins_at >= ? AND begins_at < ? AND completed + failed + cancelled > 0`,
				at(part.from), at(part.to))
		}
	}
	sums("day", days)
	sums("hour", hours)
	for _, part := range rest {
		g.from("SELECT "+s.dayOf("at")+` AS day, account_id, key_id, model, provider,
			CASE kind WHEN 'post' THEN amount ELSE 0 END AS cost, 0 AS pending, 0 AS processing, `+countByStatus+`
			FROM ledger_transfers WHERE kind IN ('post', 'void') AND at >= ? AND at < ?`, at(part.from), at(part.to))
	}
	g.from("SELECT "+s.dayOf("created_at")+` AS day, account_id, key_id, model, provider, 0 AS cost,
		CASE status WHEN 'pending' THEN 1 ELSE 0 END AS pending,
		CASE status WHEN 'processing' THEN 1 ELSE 0 END AS processing,
		0 AS completed, 0 AS failed, 0 AS cancelled
		FROM tasks WHERE status IN ('pending', 'processing') AND created_at >= ? AND created_at < ?`, at(from), at(to))
	g.from("SELECT "+s.dayOf("created_at")+` AS day, account_id, key_id, model, '' AS provider,
		0 AS cost, 0 AS pending, 1 AS processing, 0 AS completed, 0 AS failed, 0 AS cancelled
		FROM speeches WHERE state = 'open' AND created_at >= ? AND created_at < ?`, at(from), at(to))
	return g
}

// chargeRow is a sum of a vendor's charges.
type chargeRow struct {
	usageKey
	Unit   string
	Amount mediagate.Micros
}

// vendorCharges reads the sums of the vendors' charges.
//
// Charges that are not in vendor_sums yet are added from the attempts.
func (s *Store) vendorCharges(ctx context.Context, f mediagate.UsageFilter) ([]chargeRow, error) {
	g := &gathering{filter: f}
	from, to := bounds(f.From, f.To)
	columns := "SELECT " + s.dayOf("begins_at") + " AS day, account_id, key_id, model, provider, unit, amount FROM "
	g.from(columns+"vendor_sums WHERE begins_at >= ? AND begins_at < ?", at(from), at(to))
	uncounted := s.chargesOf("a.vendor_uncounted_at >= ? AND a.vendor_uncounted_at < ?")
	g.from(columns+"("+uncounted+") AS uncounted WHERE true", at(from), at(to))
	sum := g.statement([]string{"unit"}, []string{"amount"})
	var rows []chargeRow
	if err := read(s.on(ctx), &rows, sum.text.String(), sum.args...); err != nil {
		return nil, dbError(err, "read vendors' charges")
	}
	return rows, nil
}

// withCharges adds the vendors' charges to the rows of usage. It inserts a row for a charge without
// usage, since a vendor may charge for work that no client paid for.
func withCharges(usage []mediagate.Usage, charges []chargeRow) []mediagate.Usage {
	for _, c := range charges {
		row := usageRow{usageKey: c.usageKey}.usage()
		i, found := slices.BinarySearchFunc(usage, row, compareUsage)
		if !found {
			usage = slices.Insert(usage, i, row)
		}
		charge := mediagate.VendorCharge{Amount: c.Amount.Number().String(), Unit: c.Unit}
		// A row has one charge for each unit in which the vendor charges.
		usage[i].VendorCharges = append(usage[i].VendorCharges, charge)
	}
	return usage
}

// compareUsage compares two rows in the order of usageColumns.
func compareUsage(a, b mediagate.Usage) int {
	return cmp.Or(a.Day.Compare(b.Day), cmp.Compare(a.AccountID, b.AccountID), cmp.Compare(a.KeyID, b.KeyID),
		cmp.Compare(a.Model, b.Model), cmp.Compare(a.Provider, b.Provider))
}

// Usage is counted where money moves: the transfer that ends a hold names the model and the provider,
// and the statement after it adds the end to the sums of its hour and its day. So the sums can be
// derived from the ledger alone, even after the task is removed.

// usageSumKey has the columns that identify a row of usage_sums.
const usageSumKey = "account_id, span, begins_at, key_id, model, provider"

// figures are the columns of usage_sums that are summed: three amounts, then three numbers of tasks.
var figures = []string{"cost", "released", "taken", "completed", "failed", "cancelled"}

// vendorSumKey has the columns that identify a row of vendor_sums.
const vendorSumKey = "account_id, begins_at, key_id, model, provider, unit"

// eachFigure repeats a text for each figure, with the figure's name in place of @.
func eachFigure(text, separator string) string {
	of := func(figure string) string { return strings.ReplaceAll(text, "@", figure) }
	return strings.Join(convert(figures, of), separator)
}

// sumsOf returns the query of the rows of usage_sums for the ends e that meet the condition. The held
// amount counts as taken in the hour and day of the hold, and as released in those of its end. Ends
// with the same hour of the hold and the same hour of the end are summed first, and days are summed
// from hours, so that few rows are sorted even for all ends of a ledger.
//
// Example: a hold of 5 at 10:50 ends at 11:10 at a cost of 3. The hour from 10:00 gets taken 5;
// the hour from 11:00 gets released 5, cost 3 and one completed task. The day gets all of these.
func (s *Store) sumsOf(condition string) string {
	sums := eachFigure("CAST(SUM(@) AS bigint) AS @", ", ")
	return `WITH ends AS (SELECT account_id, key_id, model, provider, ended_at, held_at,
			SUM(cost) AS cost, SUM(hold) AS hold,
			COUNT(CASE status WHEN 'completed' THEN 1 END) AS completed,
			COUNT(CASE status WHEN 'failed' THEN 1 END) AS failed,
			COUNT(CASE status WHEN 'cancelled' THEN 1 END) AS cancelled
		FROM (SELECT e.account_id, e.key_id, e.model, e.provider, e.status,
				` + s.hourOf("e.at") + " AS ended_at, " + s.hourOf("h.at") + ` AS held_at,
				CASE e.kind WHEN 'post' THEN e.amount ELSE 0 END AS cost, h.amount AS hold
			FROM ledger_transfers e JOIN ledger_transfers h ON h.task_id = e.task_id AND h.kind = 'hold'
			WHERE e.kind IN ('post', 'void') AND ` + condition + `) AS each_end
		GROUP BY ended_at, held_at, account_id, key_id, model, provider),
		hours AS (SELECT account_id, begins_at, key_id, model, provider, ` + sums + `
			FROM (SELECT account_id, ended_at AS begins_at, key_id, model, provider,
					cost, hold AS released, 0 AS taken, completed, failed, cancelled FROM ends
				UNION ALL SELECT account_id, held_at, key_id, model, provider, 0, 0, hold, 0, 0, 0 FROM ends) AS counted
			GROUP BY begins_at, account_id, key_id, model, provider)
		SELECT account_id, 'hour' AS span, begins_at, key_id, model, provider, ` + eachFigure("@", ", ") + ` FROM hours
		UNION ALL SELECT account_id, 'day', day, key_id, model, provider, ` + sums + `
			FROM (SELECT hours.*, ` + s.dayOf("begins_at") + ` AS day FROM hours) AS of_days
			GROUP BY account_id, day, key_id, model, provider`
}

// count adds the ends that meet the condition to the sums. It locks the rows of usage_sums in the order
// of their keys, before the rows of keys and accounts, so that no two transactions deadlock.
//
// count runs in the transaction that ends the hold, so each end is counted once.
func (s *Store) count(tx *gorm.DB, condition string, args ...any) error {
	_, err := exec(tx, "INSERT INTO usage_sums ("+usageSumKey+", "+eachFigure("@", ", ")+") "+s.sumsOf(condition)+
		" ORDER BY "+usageSumKey+" ON CONFLICT ("+usageSumKey+`)
		DO UPDATE SET `+eachFigure("@ = usage_sums.@ + excluded.@", ", "), args...)
	return err
}

// noteVendorCharge stores the vendor's charge for an attempt. The first one that the vendor stated
// counts.
//
// vendor_amount IS NULL lets only the first charge in. vendor_uncounted_at marks the row for
// CountVendorCharges, and its hour is the one for which the charge counts.
func noteVendorCharge(tx *gorm.DB, taskID string, n int, o *mediagate.Outcome, now stamp) error {
	if o == nil || o.VendorCharge == nil {
		return nil
	}
	amount, ok := o.VendorCharge.Micros()
	if !ok { // no adapter of ours returns such a charge
		return nil
	}
	_, err := exec(tx, `UPDATE attempts SET vendor_amount = ?, vendor_unit = ?, vendor_uncounted_at = ?
		WHERE task_id = ? AND n = ? AND vendor_amount IS NULL`, amount, o.VendorCharge.Unit, now, taskID, n)
	return err
}

// chargesOf returns the query of the vendors' charges for attempts a that are not counted yet.
func (s *Store) chargesOf(condition string) string {
	return "SELECT t.account_id, " + s.hourOf("a.vendor_uncounted_at") + ` AS begins_at, t.key_id, t.model, a.provider,
			a.vendor_unit AS unit, a.vendor_amount AS amount
		FROM attempts a JOIN tasks t ON t.id = a.task_id
		WHERE a.vendor_uncounted_at IS NOT NULL AND ` + condition
}

// CountVendorCharges adds up to limit charges of vendors to the sums, and returns how many.
//
// The rows of the attempts are locked first and marked as counted in the same transaction, so no
// charge counts twice. Rows that are locked are left to the next call. The partial index
// attempts_vendor_uncounted finds them.
func (s *Store) CountVendorCharges(ctx context.Context, limit int) (counted int, err error) {
	type chargedRow struct {
		TaskID string `json:"task_id"`
		N      int    `json:"n"`
	}
	mine := "(a.task_id, a.n) IN (SELECT v.task_id, v.n FROM " + s.rowsOf("task_id text, n integer") + ")"
	err = s.write(ctx, "count vendors' charges", func(tx *gorm.DB) error {
		counted = 0
		var rows []chargedRow
		if err := read(tx, &rows, `SELECT a.task_id, a.n FROM attempts a WHERE a.vendor_uncounted_at IS NOT NULL
			ORDER BY a.vendor_uncounted_at LIMIT ?`+s.skipLocked("a"), limit); err != nil || len(rows) == 0 {
			return err
		}
		counted = len(rows)
		list, err := jsonText(rows)
		if err != nil {
			return err
		}
		// The rows of vendor_sums are written in the order of their keys, so two calls cannot deadlock
		// over them.
		if _, err := exec(tx, "INSERT INTO vendor_sums ("+vendorSumKey+`, amount)
			SELECT `+vendorSumKey+", CAST(SUM(amount) AS bigint) FROM ("+s.chargesOf(mine)+`) AS charged
			WHERE true GROUP BY `+vendorSumKey+" ORDER BY "+vendorSumKey+`
			ON CONFLICT (`+vendorSumKey+`)
			DO UPDATE SET amount = vendor_sums.amount + excluded.amount`, list); err != nil {
			return err
		}
		_, err = exec(tx, "UPDATE attempts AS a SET vendor_uncounted_at = NULL WHERE "+mine, list)
		return err
	})
	return counted, err
}
