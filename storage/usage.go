package storage

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
)

// forever is the end of a time without one.
var forever = time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)

// bounds are the beginning and the end of a time, which may have none.
func bounds(from, to time.Time) (time.Time, time.Time) {
	if from.IsZero() {
		from = time.Unix(0, 0)
	}
	if to.IsZero() || to.After(forever) {
		to = forever
	}
	return from.UTC(), to.UTC()
}

// stretch is a part of a time.
type stretch struct{ from, to time.Time }

// cover divides the time from from until to: whole days, whole hours beside them,
// and what is left of hours at its ends, where the ledger itself is read.
func cover(from, to time.Time) (days, hours, rest []stretch) {
	add := func(list *[]stretch, from, to time.Time) {
		if from.Before(to) {
			*list = append(*list, stretch{from, to})
		}
	}
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

// ceil is the first beginning of the unit that is not before t.
func ceil(t time.Time, unit time.Duration) time.Time {
	if whole := t.Truncate(unit); whole.Before(t) {
		return whole.Add(unit)
	}
	return t
}

// usageRow is a row of usage as it is read.
type usageRow struct {
	Day        stamp
	AccountID  string
	KeyID      string
	Model      string
	Provider   string
	Cost       mediagate.Micros
	Pending    int64
	Processing int64
	Completed  int64
	Failed     int64
	Cancelled  int64
}

func (r usageRow) usage() mediagate.Usage {
	return mediagate.Usage{
		Day: r.Day.Time, AccountID: r.AccountID, KeyID: r.KeyID, Model: r.Model, Provider: r.Provider, Cost: r.Cost,
		Tasks: mediagate.UsageTasks{Pending: r.Pending, Processing: r.Processing, Completed: r.Completed, Failed: r.Failed, Cancelled: r.Cancelled},
	}
}

// usageColumns are the columns by which usage is told apart, in the order of rows.
var usageColumns = []struct {
	by   mediagate.UsageBy
	name string
	none string // what stands for it where nobody asked
}{
	{mediagate.ByDay, "day", "NULL"},
	{mediagate.ByAccount, "account_id", "''"},
	{mediagate.ByKey, "key_id", "''"},
	{mediagate.ByModel, "model", "''"},
	{mediagate.ByProvider, "provider", "''"},
}

// gathering is a question about usage: the places that know a part of the answer,
// which are read in one statement, hence at one moment.
type gathering struct {
	filter mediagate.UsageFilter
	pieces []string
	args   []any
}

// chosen are the columns that the question tells apart, and their places among
// usageColumns.
func (g *gathering) chosen() (names []string, places []int) {
	for i, c := range usageColumns {
		if slices.Contains(g.filter.By, c.by) {
			names, places = append(names, c.name), append(places, i)
		}
	}
	return names, places
}

// from adds a place: what its columns are called, what adds up, its tables and
// its conditions.
func (g *gathering) from(columns [5]string, figures, tables, conditions string, args ...any) {
	names, places := g.chosen()
	selected := make([]string, len(names), len(names)+1)
	for i, name := range names {
		selected[i] = columns[places[i]] + " AS " + name
	}
	if g.filter.AccountID != "" {
		conditions += " AND " + columns[1] + " = ?"
		args = append(args, g.filter.AccountID)
	}
	g.pieces = append(g.pieces, "SELECT "+strings.Join(append(selected, figures), ", ")+" FROM "+tables+" WHERE "+conditions)
	g.args = append(g.args, args...)
}

// statement sums the figures, for each value of the other columns besides those
// that the question tells apart.
func (g *gathering) statement(others []string, figures ...string) (query string, args []any) {
	names, places := g.chosen()
	var selected []string
	for i, c := range usageColumns {
		if slices.Contains(places, i) {
			selected = append(selected, c.name)
		} else {
			selected = append(selected, c.none)
		}
	}
	selected = append(selected, others...)
	for _, figure := range figures {
		selected = append(selected, "CAST(COALESCE(SUM("+figure+"), 0) AS bigint)")
	}
	query = "SELECT " + strings.Join(selected, ", ") + " FROM (" + strings.Join(g.pieces, " UNION ALL ") + ") AS gathered"
	if list := strings.Join(append(names, others...), ", "); list != "" {
		query += " GROUP BY " + list + " ORDER BY " + list
	}
	return query + " LIMIT ?", append(g.args, g.filter.Limit+1)
}

// ended are the figures of a transfer that ends a hold.
var ended = "CASE e.kind WHEN 'post' THEN e.amount ELSE 0 END AS cost, 0 AS pending, 0 AS processing, " + countOf("completed") + ", " + countOf("failed") + ", " + countOf("cancelled")

func countOf(status string) string {
	return "CASE WHEN e.status = '" + status + "' THEN 1 ELSE 0 END AS " + status
}

// Usage tells what was used, and whether there are more rows than the filter
// allows. Without By there is one row, of zeros where nothing was used. What
// vendors charged is that of the hours that begin within the time.
func (s *Store) Usage(ctx context.Context, f mediagate.UsageFilter) (usage []mediagate.Usage, hasMore bool, err error) {
	g := &gathering{filter: f}
	from, to := bounds(f.From, f.To)
	days, hours, rest := cover(from, to)
	sums := func(span string, parts []stretch) {
		for _, part := range parts {
			g.from([5]string{s.dayOf("begins_at"), "account_id", "key_id", "model", "provider"},
				"cost, 0 AS pending, 0 AS processing, completed, failed, cancelled", "usage_sums",
				"span = '"+span+"' AND begins_at >= ? AND begins_at < ? AND completed + failed + cancelled > 0", at(part.from), at(part.to))
		}
	}
	sums("day", days)
	sums("hour", hours)
	for _, part := range rest {
		g.from([5]string{s.dayOf("e.at"), "e.account_id", "e.key_id", "e.model", "e.provider"}, ended, "ledger_transfers e",
			"e.kind IN ('post', 'void') AND e.at >= ? AND e.at < ?", at(part.from), at(part.to))
	}
	g.from([5]string{s.dayOf("t.created_at"), "t.account_id", "t.key_id", "t.model", "t.provider"},
		"0 AS cost, CASE t.status WHEN 'pending' THEN 1 ELSE 0 END AS pending, CASE t.status WHEN 'pending' THEN 0 ELSE 1 END AS processing, 0 AS completed, 0 AS failed, 0 AS cancelled",
		"tasks t", "t.status IN ('pending', 'processing') AND t.created_at >= ? AND t.created_at < ?", at(from), at(to))
	g.from([5]string{s.dayOf("s.created_at"), "s.account_id", "s.key_id", "s.model", "''"},
		"0 AS cost, 0 AS pending, 1 AS processing, 0 AS completed, 0 AS failed, 0 AS cancelled",
		"speeches s", "s.state = 'open' AND s.created_at >= ? AND s.created_at < ?", at(from), at(to))
	query, args := g.statement(nil, "cost", "pending", "processing", "completed", "failed", "cancelled")
	var rows []usageRow
	if err := read(s.on(ctx), &rows, query, args...); err != nil {
		return nil, false, dbError(err, "read usage")
	}
	usage = convert(rows, usageRow.usage)
	cut := false // a row of usage may have several charges, so that these end sooner
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

// chargeRow is what a vendor charged, as it is read.
type chargeRow struct {
	Day       stamp
	AccountID string
	KeyID     string
	Model     string
	Provider  string
	Unit      string
	Amount    mediagate.Micros
}

// vendorCharges are the sums of what vendors charged.
func (s *Store) vendorCharges(ctx context.Context, f mediagate.UsageFilter) ([]chargeRow, error) {
	g := &gathering{filter: f}
	from, to := bounds(f.From, f.To)
	columns := [5]string{s.dayOf("begins_at"), "account_id", "key_id", "model", "provider"}
	g.from(columns, "unit, amount", "vendor_sums", "begins_at >= ? AND begins_at < ?", at(from), at(to))
	g.from(columns, "unit, amount", "("+s.chargesOf("a.vendor_uncounted_at >= ? AND a.vendor_uncounted_at < ?")+") AS uncounted", "true", at(from), at(to))
	query, args := g.statement([]string{"unit"}, "amount")
	var rows []chargeRow
	if err := read(s.on(ctx), &rows, query, args...); err != nil {
		return nil, dbError(err, "read what vendors charged")
	}
	return rows, nil
}

// withCharges puts the charges beside what was used. A vendor may have charged
// for what nobody paid for.
func withCharges(usage []mediagate.Usage, charges []chargeRow) []mediagate.Usage {
	for _, c := range charges {
		row := usageRow{Day: c.Day, AccountID: c.AccountID, KeyID: c.KeyID, Model: c.Model, Provider: c.Provider}.usage()
		i, found := slices.BinarySearchFunc(usage, row, compareUsage)
		if !found {
			usage = slices.Insert(usage, i, row)
		}
		usage[i].VendorCharges = append(usage[i].VendorCharges, mediagate.VendorCharge{Amount: c.Amount.Number().String(), Unit: c.Unit})
	}
	return usage
}

// compareUsage is the order of usageColumns.
func compareUsage(a, b mediagate.Usage) int {
	return cmp.Or(a.Day.Compare(b.Day), cmp.Compare(a.AccountID, b.AccountID), cmp.Compare(a.KeyID, b.KeyID),
		cmp.Compare(a.Model, b.Model), cmp.Compare(a.Provider, b.Provider))
}
