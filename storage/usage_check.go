package storage

import "strings"

// usageInvariant is that the sums are those of the ends in the ledger that were
// counted, each once. It names the first figure that is off.
func (s *Store) usageInvariant() invariant {
	stored, due, names := make([]string, len(figures)), make([]string, len(figures)), strings.Builder{}
	var found, expected, differs strings.Builder
	for i, figure := range figures {
		stored[i], due[i] = figure+" AS found_"+figure+", 0 AS due_"+figure, "0, "+figure
		scale := ""
		if i >= 3 { // numbers of tasks; problems are told as amounts
			scale = " * 1000000"
		}
		sums := "SUM(found_" + figure + ") <> SUM(due_" + figure + ")"
		names.WriteString(" WHEN " + sums + " THEN '" + figure + "'")
		found.WriteString(" WHEN " + sums + " THEN SUM(found_" + figure + ")" + scale)
		expected.WriteString(" WHEN " + sums + " THEN SUM(due_" + figure + ")" + scale)
		if i > 0 {
			differs.WriteString(" OR ")
		}
		differs.WriteString(sums)
	}
	return invariant{
		`SELECT account_id || ', key ' || key_id || ', model ' || model || ', ' || span || ' from ' || CAST(begins_at AS text) || ': ' || CASE` + names.String() + ` END AS id,
			CASE` + found.String() + ` END AS found, CASE` + expected.String() + ` END AS expected
		FROM (SELECT ` + usageSumKey + ", " + strings.Join(stored, ", ") + ` FROM usage_sums
			UNION ALL SELECT ` + usageSumKey + ", " + strings.Join(due, ", ") + " FROM (" + s.sumsOf("e.model IS NOT NULL") + `) AS ends) AS compared
		GROUP BY ` + usageSumKey + " HAVING " + differs.String(),
		"usage of %s is %s, by the ledger %s",
	}
}
