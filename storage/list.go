package storage

import (
	"context"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/mediagate/mediagate"
)

// A list is read from an index in which its tasks stand next to each other, in
// their order: however many others its account has, no more rows are looked at than
// are shown. What a filter leaves open of a column that has few values is read
// from as many stretches of the index, of which the newest are merged.
//
//	filter           index                                       stretches
//	none             tasks_account: account, id                  1
//	status, type     tasks_kind: account, type, status, id       1 to 5
//	model as well    tasks_model: account, model, type, status, id   1 to 20
//	reference        tasks_references: reference, account, id    1
//	webhook          tasks_abandoned: id, of given up callbacks  1
//
// A time is a range of ids in each of them. What has a reference is looked at
// whole where another filter goes with it: references are the client's own, and
// meant to tell one task from the others. So is what has a callback that was given up;
// of other states of callbacks all that the account has is looked at. The lists of operators are in
// list_operator.go.

// defaultLimit is the length of a list that names none.
const defaultLimit = 20

// Tasks lists tasks, newest first. Returns KindInvalid when After names no task of
// the account, or none at all in a list of all accounts.
func (s *Store) Tasks(ctx context.Context, f mediagate.TaskFilter) (tasks []mediagate.Task, hasMore bool, err error) {
	if f.After != "" {
		named := (&statement{}).say("SELECT id FROM tasks").where(mediagate.TaskFilter{AccountID: f.AccountID}, "").with(" AND id = ?", f.After)
		found, err := one[struct{ ID string }](s.on(ctx), named.text.String(), named.args...)
		if err != nil {
			return nil, false, dbError(err, "list tasks")
		}
		if found == nil {
			return nil, false, mediagate.Invalid("after", "after names no task")
		}
	}
	return s.SelectTasks(ctx, f)
}

// SelectTasks lists tasks as Tasks does, but After need not be the id of a task: who goes
// through a list goes on where one has been deleted meanwhile.
func (s *Store) SelectTasks(ctx context.Context, f mediagate.TaskFilter) (tasks []mediagate.Task, hasMore bool, err error) {
	if f.Limit <= 0 {
		f.Limit = defaultLimit
	}
	f.CreatedBefore = wholeMicros(f.CreatedBefore)
	list, err := s.listing(ctx, f)
	if err != nil {
		return nil, false, dbError(err, "list tasks")
	}
	var rows []taskRow
	if err := read(s.on(ctx), &rows, list.text.String(), list.args...); err != nil {
		return nil, false, dbError(err, "list tasks")
	}
	rows, hasMore = page(rows, f.Limit)
	tasks, err = convertAll(rows, taskRow.task)
	return tasks, hasMore, err
}

// wholeMicros is the first of the times that a column can hold which is not before
// t. The zero time, which is none, stands for itself and comes of nothing else.
func wholeMicros(t time.Time) time.Time {
	whole := t.Truncate(time.Microsecond)
	if up := whole.Add(time.Microsecond); whole.Before(t) && !up.IsZero() {
		return up
	}
	return whole
}

// listing writes the statement of a list.
func (s *Store) listing(ctx context.Context, f mediagate.TaskFilter) (*statement, error) {
	one := f.Model == "" && f.Type == "" && f.Status == ""
	switch {
	case f.Stuck:
		return s.listingOfStuck(f), nil
	case f.Reference != "" || f.Webhook != "" || f.Channel == "" && one || f.Channel != "" && f.AccountID != "":
		return listingOfAll(f), nil
	case f.AccountID == "":
		return s.listingOfKinds(ctx, f)
	default:
		return s.listingOfSome(f), nil
	}
}

// where writes the conditions of a filter, id being how ids are compared; empty leaves
// out those that a range of ids stands for.
func (list *statement) where(f mediagate.TaskFilter, id string) *statement {
	list.say(" WHERE tasks.erased_at IS NULL")
	and := func(set bool, condition string, value any) {
		if set {
			list.with(" AND "+condition+" ?", value)
		}
	}
	and(f.AccountID != "", "tasks.account_id =", f.AccountID)
	// The planner takes the index of references only when it sees the second half.
	and(f.Reference != "", "tasks.reference <> '' AND tasks.reference =", f.Reference)
	and(f.Model != "", "tasks.model =", f.Model)
	and(f.Type != "", "tasks.type =", f.Type)
	and(f.Status != "", "tasks.status =", f.Status)
	and(f.Channel != "", "tasks.channel =", f.Channel)
	if f.Webhook == mediagate.WebhookAbandoned { // said so that the planner finds the index of them
		list.say(" AND tasks.webhook_state = 'abandoned'")
	} else {
		and(f.Webhook != "", "tasks.webhook_state =", f.Webhook)
	}
	if id == "" {
		return list
	}
	and(f.After != "", id+" <", f.After)
	and(!f.CreatedAfter.IsZero(), "tasks.created_at >", at(f.CreatedAfter))
	and(!f.CreatedAfter.IsZero(), id+" >=", idAt(f.CreatedAfter.Add(-idMargin)))
	and(!f.CreatedBefore.IsZero(), "tasks.created_at <", at(f.CreatedBefore))
	and(!f.CreatedBefore.IsZero(), id+" <", idAt(f.CreatedBefore.Add(idMargin)))
	return list
}

// listingOfAll is a list of all tasks, or all of an account, or all with a reference.
// Its limit is a parameter, for which PostgreSQL plans the statement each time anew:
// where nearly all tasks are of one account, a plan for any account may go through
// those of all.
func listingOfAll(f mediagate.TaskFilter) *statement {
	return (&statement{}).say("SELECT ", columnsOf[taskRow]().text, " FROM tasks").where(f, "tasks.id").with(" ORDER BY tasks.id DESC LIMIT ?", f.Limit+1)
}

// listingOfSome is a list of the account's tasks of a model, type or status. It is
// one of few statements, whatever the filter and its limit: plans that are kept for
// each connection take room. PostgreSQL reads the stretches one by one in a loop;
// SQLite, which has no such thing, is given each by itself.
//
// PostgreSQL is asked with a row of values that it does not look into. Else it takes a
// plan for these values to be better than one for any, where it expects few matches,
// and makes one each time: that takes twice as long as to carry it out.
func (s *Store) listingOfSome(f mediagate.TaskFilter) *statement {
	types, statuses := oneOf(f.Type, mediagate.TaskTypes()), oneOf(f.Status, mediagate.Statuses())
	id := "id"
	if !s.lite {
		id += bytewise
	}
	asked := []bound{{"account_id =", "account_id", "text", f.AccountID}}
	if f.Model != "" {
		asked = append(asked, bound{"model =", "model", "text", f.Model})
	}
	from, to := firstID, lastID
	if f.After != "" {
		to = f.After
	}
	if !f.CreatedAfter.IsZero() || !f.CreatedBefore.IsZero() {
		after, before := bounds(f.CreatedAfter, f.CreatedBefore)
		from, to = max(from, idAt(after.Add(-idMargin))), min(to, idAt(before.Add(idMargin)))
		asked = append(asked, bound{"created_at >", "after", "timestamptz", at(after)}, bound{"created_at <", "before", "timestamptz", at(before)})
	}
	asked = append(asked, bound{id + " >=", "first", "text", from}, bound{id + " <", "beyond", "text", to})

	list := (&statement{}).say("SELECT ", columnsOf[taskRow]().of("tasks"), " FROM (SELECT id FROM (")
	begin := "SELECT id FROM tasks WHERE erased_at IS NULL AND type = "
	end := " ORDER BY " + id + " DESC LIMIT " + readAhead(f.Limit) + ")"
	if s.lite {
		for i, t := range types {
			for j, status := range statuses {
				if i+j > 0 {
					list.say(" UNION ALL ")
				}
				list.with("SELECT id FROM ("+begin+"? AND status = ?", t, status)
				for _, b := range asked {
					list.with(" AND "+b.condition+" ?", b.value)
				}
				list.say(end)
			}
		}
	} else {
		list.say("SELECT stretch.id FROM (SELECT ")
		for i, b := range asked {
			if i > 0 {
				list.say(", ")
			}
			list.with("CAST(? AS "+b.kind+") AS "+b.name, b.value)
		}
		list.say(" OFFSET 0) AS asked CROSS JOIN ")
		valuesOf(list, types)
		list.say(" AS types (type) CROSS JOIN ")
		valuesOf(list, statuses)
		list.say(" AS statuses (status) CROSS JOIN LATERAL (", begin, "types.type AND status = statuses.status")
		for _, b := range asked {
			list.say(" AND ", b.condition, " asked.", b.name)
		}
		list.say(end, " AS stretch")
	}
	return list.say(") AS stretches ORDER BY id DESC LIMIT ", readAhead(f.Limit), ") AS newest JOIN tasks ON tasks.id = newest.id ORDER BY tasks.id DESC")
}

// bound is a condition on a column, and the name and type of the value that it is
// held against.
type bound struct {
	condition, name, kind string
	value                 any
}

// valuesOf writes a table of one column, which the planner does not look into.
func valuesOf[T ~string](list *statement, values []T) {
	list.say("(VALUES ")
	for i, value := range values {
		if i > 0 {
			list.say(", ")
		}
		list.with("(?)", string(value))
	}
	list.say(" OFFSET 0)")
}

// oneOf is the value, or all that there are where the filter leaves it open.
func oneOf[T ~string](value T, all []T) []T {
	if value != "" {
		return []T{value}
	}
	return all
}

// readAhead is how many rows a list of that length reads, as text: one more, and so
// many that the statements for all lengths are few.
func readAhead(limit int) string {
	for _, length := range []int{defaultLimit, 100} {
		if limit <= length {
			limit = length
			break
		}
	}
	return strconv.Itoa(limit + 1)
}

// bytewise is the order of ids in the indexes of filtered lists. In that order no
// other index has the tasks: so the planner cannot think that it finds them sooner
// in that of all.
const bytewise = ` COLLATE "C"`

// Less than all ids, and more.
const (
	firstID = "task_"
	lastID  = "task_~"
)

// idMargin is more than a task's creation and the time in its id may be apart. Both
// are one reading of the clock, but were two in rows of old.
const idMargin = time.Minute

// idAt is less than the ids of all tasks made at that time or later, and more than
// those of earlier ones.
func idAt(t time.Time) string {
	var id ulid.ULID
	if t.After(time.UnixMilli(0)) {
		_ = id.SetTime(min(ulid.Timestamp(t), ulid.MaxTime())) // no more than it holds
	}
	return "task_" + id.String()
}
