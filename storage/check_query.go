package storage

import (
	"slices"
	"strconv"
	"strings"

	"gorm.io/gorm"
)

// condition is a part of a WHERE with what its parameters hold.
type condition struct {
	text string
	args []any
}

func (c condition) and(text string, args ...any) condition {
	if c.text != "" {
		text = c.text + " AND " + text
	}
	return condition{text, append(slices.Clone(c.args), args...)}
}

func (c condition) after(column, id string) condition { return c.and(column+" > ?", id) }

func (c condition) until(column, id string) condition { return c.and(column+" <= ?", id) }

// tableOf are the tables of the things that rules are about, of which the
// condition of a statement knows each as t; columnsAsked what rules ask of them.
var (
	tableOf      = map[thing]string{aTransfer: "ledger_transfers", aTask: "tasks", aSpeech: "speeches", anEntry: "ledger_entries"}
	columnsAsked = map[thing]string{
		aTransfer: "t.id, t.kind, t.account_id, t.key_id, t.task_id, t.amount, t.at, t.counted_day",
		aTask:     "t.id, t.status, t.hold, t.cost",
		aSpeech:   "t.id, t.state, t.hold, t.cost",
		anEntry:   "t.transfer_id, t.amount",
	}
)

// keyOf is the column that names a thing.
func keyOf(about thing) string {
	if about == anEntry {
		return "t.transfer_id"
	}
	return "t.id"
}

// chosen begins a statement on those of the things that the condition leaves.
func chosen(about thing, some condition) string {
	return "WITH those AS MATERIALIZED (SELECT " + columnsAsked[about] + " FROM " + tableOf[about] + " t WHERE " + some.text + ") "
}

// asking are the rules about the things, as one query; each rule's own part ends
// with the text.
func asking(about thing, end string) string {
	var parts []string
	for i, r := range rules {
		if r.about != about {
			continue
		}
		name := r.names
		if name == "" {
			name = "id"
		}
		parts = append(parts, "SELECT "+strconv.Itoa(i)+" AS rule, id, CAST(found AS bigint) AS found, CAST(expected AS bigint) AS expected, "+name+
			" AS mark FROM (SELECT * FROM ("+r.query+") AS q"+strconv.Itoa(i)+end+") AS r"+strconv.Itoa(i))
	}
	return strings.Join(parts, " UNION ALL ")
}

// firstOfEach leaves what is told of a rule.
var firstOfEach = " ORDER BY id LIMIT " + strconv.Itoa(maxProblems)

// problemColumns are those of a problemRow.
const problemColumns = "SELECT rule, id, found, expected FROM ("

// broken asks the rules about some of the things: one statement, hence one moment.
func (s *Store) broken(tx *gorm.DB, about thing, some condition) (found []problemRow, err error) {
	err = read(tx, &found, chosen(about, some)+problemColumns+asking(about, firstOfEach)+") AS broken", some.args...)
	return found, err
}

// allBroken is the query for all that is broken of some of the things.
func (s *Store) allBroken(about thing, some condition) (query string, args []any) {
	return chosen(about, some) + asking(about, ""), some.args
}

// mark stores which of the things are broken.
func (s *Store) mark(tx *gorm.DB, run string, about thing, some condition) error {
	query, args := s.allBroken(about, some)
	_, err := exec(tx, "INSERT INTO ledger_check_marks (run, kind, id, n) SELECT CAST(? AS text), CAST(? AS text), mark, 1 FROM ("+query+
		") AS broken WHERE true GROUP BY mark ON CONFLICT (run, kind, id) DO NOTHING", append([]any{run, about}, args...)...)
	return err
}

// What sums are of, besides the buckets of entries: grants, and what holds and
// their ends make of the caps of keys, for each day.
const (
	granted = "granted"
	counted = "counted"
)

// moves are what each of the transfers "those" adds to the sums.
func (s *Store) moves() string {
	return `SELECT e.account_id, COALESCE(e.key_id, '') AS key_id, e.bucket AS what, 0 AS day, e.amount FROM those t JOIN ledger_entries e ON e.transfer_id = t.id
		UNION ALL SELECT t.account_id, '', '` + granted + `', 0, t.amount FROM those t WHERE t.kind = 'grant'
		UNION ALL SELECT h.account_id, h.key_id, '` + counted + `', ` + s.microsOf("h.counted_day") + `,
				CASE t.kind WHEN 'hold' THEN t.amount WHEN 'post' THEN t.amount - h.amount ELSE -h.amount END
			FROM those t JOIN ledger_transfers h ON h.task_id = t.task_id AND h.kind = 'hold'
			WHERE t.kind <> 'grant' AND t.counted_day IS NOT NULL AND h.counted_day IS NOT NULL`
}

// microsOf is a time as microseconds since 1970.
func (s *Store) microsOf(column string) string {
	if s.lite {
		return column
	}
	return "CAST(EXTRACT(EPOCH FROM " + column + ") * 1000000 AS bigint)"
}

// addSums adds what the transfers come to.
func (s *Store) addSums(tx *gorm.DB, run string, some condition) error {
	const key = "account_id, key_id, what, day"
	_, err := exec(tx, "INSERT INTO ledger_check_sums (run, "+key+", amount) "+chosen(aTransfer, some)+
		"SELECT CAST(? AS text), "+key+", CAST(SUM(amount) AS bigint) FROM ("+s.moves()+") AS moves WHERE true GROUP BY "+key+" ORDER BY "+key+
		" ON CONFLICT (run, "+key+") DO UPDATE SET amount = ledger_check_sums.amount + excluded.amount", append(slices.Clone(some.args), run)...)
	return err
}

// brokenAccounts asks the rules about the accounts that the condition on a column
// leaves, by the sums as far as the row goes and the transfers after it.
func (s *Store) brokenAccounts(tx *gorm.DB, row checkRow, of func(column string) condition) (found []problemRow, err error) {
	began := make([]string, len(periods))
	for i, p := range periods {
		began[i] = "t." + p.name + "_used, " + s.microsOf("t."+p.name+"_start") + " AS " + p.name + "_began"
	}
	tail := row.tail()
	query := &statement{}
	query.say(chosen(aTransfer, tail))
	query.args = append(query.args, tail.args...)
	add := func(before string, c condition, after string) {
		query.say(before, c.text, after)
		query.args = append(query.args, c.args...)
	}
	add(", these AS MATERIALIZED (SELECT t.id, t.available, t.held, t.spent, t.in_flight, t.in_flight_cap FROM accounts t WHERE ", of("t.id"), ")")
	add(", their_keys AS MATERIALIZED (SELECT t.id, t.account_id, COALESCE(t.purse_id, t.id) AS purse, t.unlimited, t.quota, t.held, t.spent, t.in_flight, t.in_flight_cap, "+
		strings.Join(began, ", ")+" FROM keys t WHERE ", of("t.account_id"), ")")
	add(", open_holds AS MATERIALIZED (SELECT t.account_id, t.hold FROM tasks t WHERE t.status IN ('pending', 'processing') AND ", of("t.account_id"), "")
	add(" UNION ALL SELECT t.account_id, t.hold FROM speeches t WHERE t.state = 'open' AND ", of("t.account_id"), ")")
	add(", sums AS MATERIALIZED (SELECT account_id, key_id, what, day, SUM(amount) AS amount FROM (SELECT account_id, key_id, what, day, amount FROM ledger_check_sums WHERE ",
		of("account_id").and("run = ?", row.Run), "")
	add(" UNION ALL SELECT account_id, key_id, what, day, amount FROM ("+s.moves()+") AS moves WHERE ", of("account_id"),
		") AS both_of_them GROUP BY account_id, key_id, what, day) ")
	query.say(problemColumns, asking(anAccount, firstOfEach), ") AS broken")
	err = read(tx, &found, query.text.String(), query.args...)
	return found, err
}
