package storage

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// maxProblems bounds the report of one rule.
const maxProblems = 100

// CheckLedger proves all rules of the ledger on one snapshot, while it is in use. Each
// problem is a line for people.
func (s *Store) CheckLedger(ctx context.Context) (report mediagate.LedgerReport, err error) {
	err = s.on(ctx).Transaction(func(tx *gorm.DB) error {
		report = mediagate.LedgerReport{Problems: []string{}}
		counted, err := one[struct{ N int }](tx, "SELECT (SELECT COUNT(*) FROM tasks) + (SELECT COUNT(*) FROM speeches) + (SELECT COUNT(*) FROM accounts) + (SELECT COUNT(*) FROM keys)")
		if err != nil {
			return err
		}
		report.Checked = counted.N
		rules := s.rules()
		found, err := s.broken(tx, rules)
		if err != nil {
			return err
		}
		slices.SortStableFunc(found, func(a, b problemRow) int {
			return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Found, b.Found))
		})
		for _, row := range found {
			report.Problems = append(report.Problems, fmt.Sprintf(rules[row.Rule].text, row.ID, row.Found.Number(), row.Expected.Number()))
		}
		report.OK = len(found) == 0
		return nil
	}, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	return report, dbError(err, "check ledger")
}

// broken asks the rules. Those about accounts share the sums of their entries, so that
// the ledger is added up once.
func (s *Store) broken(tx *gorm.DB, rules []rule) (found []problemRow, err error) {
	var shared []string
	for i, r := range rules {
		query := "SELECT " + strconv.Itoa(i) + " AS rule, id, CAST(found AS bigint) AS found, CAST(expected AS bigint) AS expected FROM (SELECT * FROM (" +
			r.query + ") AS q ORDER BY id LIMIT " + strconv.Itoa(maxProblems) + ") AS r"
		if r.summed {
			shared = append(shared, query)
			continue
		}
		var rows []problemRow
		if err := read(tx, &rows, query); err != nil {
			return nil, err
		}
		found = append(found, rows...)
	}
	var rows []problemRow
	err = read(tx, &rows, "WITH "+s.sums()+" "+strings.Join(shared, " UNION ALL "))
	return append(found, rows...), err
}
