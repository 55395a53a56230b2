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

// usageKey is what rows of usage are told apart by.
type usageKey struct {
	Day       stamp
	AccountID string
	KeyID     string
	Model     string
	Provider  string
}

// usageRow is a row of usage as it is read.
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

// usageColumns are those of usageKey, and what stands for each where nobody asked for it.
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

// gathering is a question about usage: the places that know a part of the answer,
// which are read in one statement, hence at one moment.
type gathering struct {
	filter mediagate.UsageFilter
	places statement
}

// from adds a place: a SELECT of all usageColumns and the figures, which ends in conditions.
func (g *gathering) from(query string, args ...any) {
	if len(g.places.args) > 0 {
		g.places.say(" UNION ALL ")
	}
	g.places.with(query, args...)
	if g.filter.AccountID != "" {
		g.places.with(" AND account_id = ?", g.filter.AccountID)
	}
}

// statement sums the figures, for each value of the columns by which the question tells usage
// apart, and of the others.
func (g *gathering) statement(others []string, figures ...string) *statement {
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

// countByStatus counts the end of a task.
const countByStatus = `CASE status WHEN 'completed' THEN 1 ELSE 0 END AS completed,
		CASE status WHEN 'failed' THEN 1 ELSE 0 END AS failed,
		CASE status WHEN 'cancelled' THEN 1 ELSE 0 END AS cancelled`

// Usage tells what was used, and whether there are more rows than the filter
// allows. Without By there is one row, of zeros where nothing was used. What
// vendors charged is that of the hours that begin within the time.
func (s *Store) Usage(ctx context.Context, f mediagate.UsageFilter) (usage []mediagate.Usage, hasMore bool, err error) {
	from, to := bounds(f.From, f.To)
	sum := s.gatherUsage(f, from, to).statement(nil, "cost", "pending", "processing", "completed", "failed", "cancelled")
	var rows []usageRow
	if err := read(s.on(ctx), &rows, sum.text.String(), sum.args...); err != nil {
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

// gatherUsage asks the sums of days and hours, the ledger for what is left of hours, and what
// is open.
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
		CASE status WHEN 'pending' THEN 1 ELSE 0 END AS pending, CASE status WHEN 'pending' THEN 0 ELSE 1 END AS processing,
		0 AS completed, 0 AS failed, 0 AS cancelled
		FROM tasks WHERE status IN ('pending', 'processing') AND created_at >= ? AND created_at < ?`, at(from), at(to))
	g.from("SELECT "+s.dayOf("created_at")+` AS day, account_id, key_id, model, '' AS provider,
		0 AS cost, 0 AS pending, 1 AS processing, 0 AS completed, 0 AS failed, 0 AS cancelled
		FROM speeches WHERE state = 'open' AND created_at >= ? AND created_at < ?`, at(from), at(to))
	return g
}

// chargeRow is what a vendor charged, as it is read.
type chargeRow struct {
	usageKey
	Unit   string
	Amount mediagate.Micros
}

// vendorCharges are the sums of what vendors charged.
func (s *Store) vendorCharges(ctx context.Context, f mediagate.UsageFilter) ([]chargeRow, error) {
	g := &gathering{filter: f}
	from, to := bounds(f.From, f.To)
	columns := "SELECT " + s.dayOf("begins_at") + " AS day, account_id, key_id, model, provider, unit, amount FROM "
	g.from(columns+"vendor_sums WHERE begins_at >= ? AND begins_at < ?", at(from), at(to))
	uncounted := s.chargesOf("a.vendor_uncounted_at >= ? AND a.vendor_uncounted_at < ?")
	g.from(columns+"("+uncounted+") AS uncounted WHERE true", at(from), at(to))
	sum := g.statement([]string{"unit"}, "amount")
	var rows []chargeRow
	if err := read(s.on(ctx), &rows, sum.text.String(), sum.args...); err != nil {
		return nil, dbError(err, "read what vendors charged")
	}
	return rows, nil
}

// withCharges puts the charges beside what was used. A vendor may have charged
// for what nobody paid for.
func withCharges(usage []mediagate.Usage, charges []chargeRow) []mediagate.Usage {
	for _, c := range charges {
		row := usageRow{usageKey: c.usageKey}.usage()
		i, found := slices.BinarySearchFunc(usage, row, compareUsage)
		if !found {
			usage = slices.Insert(usage, i, row)
		}
		charge := mediagate.VendorCharge{Amount: c.Amount.Number().String(), Unit: c.Unit}
		usage[i].VendorCharges = append(usage[i].VendorCharges, charge)
	}
	return usage
}

// compareUsage is the order of usageColumns.
func compareUsage(a, b mediagate.Usage) int {
	return cmp.Or(a.Day.Compare(b.Day), cmp.Compare(a.AccountID, b.AccountID), cmp.Compare(a.KeyID, b.KeyID),
		cmp.Compare(a.Model, b.Model), cmp.Compare(a.Provider, b.Provider))
}
