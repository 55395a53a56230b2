package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// table maps the values of some fields to a price. It is complete: every combination that the
// schema allows has its row.
type table struct {
	by   []string
	rows map[string]string // key → price
}

// compileTable checks that rows and schema fit together: a row names all fields of by and the
// price, each combination of allowed values has one row, and there are no other rows.
func compileTable(by []string, rows []map[string]any, s *shape) (table, []string) {
	t := table{by: by, rows: make(map[string]string, len(rows))}
	var problems []string
	wanted := []string{""}
	for _, field := range by {
		values := valuesOf(s.properties[field])
		if len(values) == 0 {
			return t, []string{fmt.Sprintf("%q has no enum, is no boolean, or is no field: nothing can depend on it", field)}
		}
		if !s.properties[field].hasFallback && !s.demanded[field] {
			return t, []string{fmt.Sprintf("%q may be absent: it needs a default before something can depend on it", field)}
		}
		next := make([]string, 0, len(wanted)*len(values))
		for _, key := range wanted {
			for _, v := range values {
				next = append(next, key+keyPart(field, v))
			}
		}
		wanted = next
	}
	columns := append(slices.Clone(by), "price")
	for i, row := range rows {
		if names := slices.Sorted(maps.Keys(row)); !slices.Equal(names, slices.Sorted(slices.Values(columns))) {
			problems = append(problems, fmt.Sprintf(
				"row %d must have %s, it has %s", i+1, list(columns, "and"), list(names, "and"),
			))
			continue
		}
		var key strings.Builder
		for _, field := range by {
			key.WriteString(keyPart(field, jsonValue(row[field])))
		}
		switch _, twice := t.rows[key.String()]; {
		case twice:
			problems = append(problems, fmt.Sprintf("row %d repeats%s", i+1, key.String()))
		case !slices.Contains(wanted, key.String()):
			problems = append(problems, fmt.Sprintf("row %d is for%s, which the schema does not allow", i+1, key.String()))
		}
		t.rows[key.String()] = fmt.Sprint(row["price"])
	}
	for _, key := range wanted {
		if _, ok := t.rows[key]; !ok {
			problems = append(problems, strings.TrimRight(fmt.Sprintf("no row for%s", key), " "))
		}
	}
	return t, problems
}

// find returns the price for the parameters. There is a row for every request that passes the
// schema.
func (t table) find(params map[string]any) (string, bool) {
	var key strings.Builder
	for _, field := range t.by {
		key.WriteString(keyPart(field, params[field]))
	}
	text, ok := t.rows[key.String()]
	return text, ok
}

func keyPart(field string, value any) string { return fmt.Sprintf(" %s=%v", field, value) }

// valuesOf lists the values that a field can have, or returns nil if they cannot be listed.
func valuesOf(s *shape) []any {
	switch {
	case s == nil:
		return nil
	case len(s.enum) > 0:
		return s.enum
	case s.is("boolean"):
		return []any{false, true}
	default:
		return nil
	}
}
