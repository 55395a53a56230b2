package storage

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"
)

// anHour is the kind of marks that name hours of the usage in which something was
// counted, by when they began, in microseconds since 1970; n is how much.
const anHour = "hour"

// hourRow is an hour of the usage.
type hourRow struct {
	ID string
	N  int
}

// hours are those in which each of the transfers "those" counts.
func (s *Store) hours() string {
	return "SELECT CAST(hour AS text) AS id, COUNT(*) AS n FROM (SELECT " + s.microsOf(s.hourOf("t.at")) + ` AS hour FROM those t WHERE t.kind IN ('post', 'void')
		UNION ALL SELECT ` + s.microsOf(s.hourOf("h.at")) + ` FROM those t JOIN ledger_transfers h ON h.task_id = t.task_id AND h.kind = 'hold'
			WHERE t.kind IN ('post', 'void')) AS counting GROUP BY hour`
}

// markHours marks the hours in which the transfers count.
func (s *Store) markHours(tx *gorm.DB, run string, some condition) error {
	_, err := exec(tx, "INSERT INTO ledger_check_marks (run, kind, id, n) "+chosen(aTransfer, some)+"SELECT CAST(? AS text), '"+anHour+"', id, n FROM ("+s.hours()+
		") AS hours WHERE true ON CONFLICT (run, kind, id) DO UPDATE SET n = ledger_check_marks.n + excluded.n", append(slices.Clone(some.args), run)...)
	return err
}

// usage compares the sums of usage with the ends in the ledger that were counted:
// hours with the ledger, days with their hours. A whole check leaves no time out.
func (c *ledgerCheck) usage(ctx context.Context) error {
	var marks []hourRow
	if err := read(c.s.on(ctx), &marks, "SELECT id, n FROM ledger_check_marks WHERE run = ? AND kind = ?", c.run, anHour); err != nil {
		return err
	}
	hours, days := map[time.Time]int{}, map[time.Time]int{}
	for _, mark := range slices.Concat(marks, c.hours) {
		began, err := strconv.ParseInt(mark.ID, 10, 64)
		if err != nil {
			return err
		}
		hour := time.UnixMicro(began).UTC()
		hours[hour] += mark.N
		days[hour.Truncate(day)] += mark.N
	}
	var bad []stretch
	for _, unit := range []struct {
		rule   int
		counts map[time.Time]int
		length time.Duration
	}{{hourRule, hours, time.Hour}, {dayRule, days, day}} {
		for _, part := range c.stretches(unit.counts, unit.length) {
			found, err := c.s.brokenUsage(ctx, unit.rule, part)
			if err != nil {
				return err
			}
			if len(found) > 0 {
				bad = append(bad, part)
			}
			c.found = append(c.found, found...)
		}
	}
	if c.whole {
		return nil
	}
	var done []string // as they were read: more may have been counted in them since
	for _, mark := range marks {
		began, _ := strconv.ParseInt(mark.ID, 10, 64) // read above
		hour := time.UnixMicro(began)
		if !slices.ContainsFunc(bad, func(b stretch) bool { return !hour.Before(b.from) && hour.Before(b.to) }) {
			done = append(done, mark.ID+" "+strconv.Itoa(mark.N))
		}
	}
	list, err := jsonText(done)
	if err != nil || len(done) == 0 {
		return err
	}
	return c.s.write(ctx, "forget the hours that are checked", func(tx *gorm.DB) error {
		if _, err := c.lock(tx); err != nil {
			return err
		}
		_, err := exec(tx, "DELETE FROM ledger_check_marks WHERE run = ? AND kind = ? AND id || ' ' || CAST(n AS text) IN "+c.s.inList(), c.run, anHour, list)
		return err
	})
}

// stretches divides the time into parts in which no more was counted than a slice
// has rows, where a part is longer than a unit: all of it for a whole check, else the
// units in which something was counted.
func (c *ledgerCheck) stretches(counts map[time.Time]int, unit time.Duration) (parts []stretch) {
	size := 0
	for _, began := range slices.SortedFunc(maps.Keys(counts), time.Time.Compare) {
		n := len(parts)
		if joins := n > 0 && (c.whole || parts[n-1].to.Equal(began)); joins && size+counts[began] <= c.s.checkRows {
			parts[n-1].to = began.Add(unit)
			size += counts[began]
			continue
		}
		parts, size = append(parts, stretch{began, began.Add(unit)}), counts[began]
	}
	if !c.whole {
		return parts
	}
	if len(parts) == 0 {
		parts = []stretch{{}}
	}
	for i := range parts[1:] {
		parts[i].to = parts[i+1].from
	}
	parts[0].from, parts[len(parts)-1].to = bounds(time.Time{}, time.Time{})
	return parts
}

// brokenUsage compares the sums of hours, or of days, that begin within a time. It
// names the first figure that is off.
func (s *Store) brokenUsage(ctx context.Context, rule int, in stretch) (found []problemRow, err error) {
	stored, due, names := make([]string, len(figures)), make([]string, len(figures)), strings.Builder{}
	var is, expected, differs strings.Builder
	for i, figure := range figures {
		stored[i], due[i] = figure+" AS found_"+figure+", 0 AS due_"+figure, "0, "+figure
		scale := ""
		if i >= 3 { // numbers of tasks; problems are told as amounts
			scale = " * 1000000"
		}
		sums := "SUM(found_" + figure + ") <> SUM(due_" + figure + ")"
		names.WriteString(" WHEN " + sums + " THEN '" + figure + "'")
		is.WriteString(" WHEN " + sums + " THEN SUM(found_" + figure + ")" + scale)
		expected.WriteString(" WHEN " + sums + " THEN SUM(due_" + figure + ")" + scale)
		if i > 0 {
			differs.WriteString(" OR ")
		}
		differs.WriteString(sums)
	}
	from, to := at(in.from), at(in.to)
	const within = "begins_at >= ? AND begins_at < ?"
	span, source, args := "hour", s.endsIn()+" AS ends WHERE span = 'hour' AND "+within, []any{from, to, from, to, from, to}
	if rule == dayRule {
		span, args = "day", []any{from, to}
		source = "(SELECT account_id, 'day' AS span, " + s.dayOf("begins_at") + " AS begins_at, key_id, model, provider, " + strings.Join(figures, ", ") +
			" FROM usage_sums WHERE span = 'hour' AND " + within + ") AS hours"
	}
	query := `SELECT ` + strconv.Itoa(rule) + ` AS rule, id, CAST(found AS bigint) AS found, CAST(expected AS bigint) AS expected FROM (
		SELECT account_id || ', key ' || key_id || ', model ' || model || ', ' || span || ' from ' || CAST(begins_at AS text) || ': ' || CASE` + names.String() + ` END AS id,
			CASE` + is.String() + ` END AS found, CASE` + expected.String() + ` END AS expected
		FROM (SELECT ` + usageSumKey + ", " + strings.Join(stored, ", ") + ` FROM usage_sums WHERE span = '` + span + `' AND ` + within + `
			UNION ALL SELECT ` + usageSumKey + ", " + strings.Join(due, ", ") + " FROM " + source + `) AS compared
		GROUP BY ` + usageSumKey + " HAVING " + differs.String() + ") AS broken" + firstOfEach
	err = s.reading(ctx, func(tx *gorm.DB) error {
		found = nil
		return read(tx, &found, query, append([]any{from, to}, args...)...)
	})
	return found, err
}

// endsIn are the sums of the ends that were stored within a time and of those
// whose holds were.
func (s *Store) endsIn() string {
	const within = ".at >= ? AND "
	return "(" + s.sumsOf(`e.model IS NOT NULL AND e.id IN (
		SELECT r.id FROM ledger_transfers r WHERE r.kind IN ('post', 'void') AND r`+within+`r.at < ?
		UNION SELECT r.id FROM ledger_transfers h JOIN ledger_transfers r ON r.task_id = h.task_id AND r.kind IN ('post', 'void')
			WHERE h.kind = 'hold' AND h`+within+`h.at < ?)`) + ")"
}
