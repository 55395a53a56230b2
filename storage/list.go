package storage

import (
	"context"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/mediagate/mediagate"
)

// Lists read no more rows than they show, however many tasks there are (ADR 22):
//
//	filter                           of an account                                     of all
//	none                             tasks_account: account, id                        the primary key
//	type, model, channel, status     tasks_of_account: account, type, model,           tasks_of_all: the same
//	                                 channel, status, id                               without the account
//	reference                        tasks_references: reference, account, id          the same
//	source                           the primary key of sources: source, task          the same
//	key                              tasks_of_key: account, key, id
//	webhook                          tasks_callbacks_of_account: account,              tasks_callbacks: the same
//	                                 state of the callback, id                         without the account
//	search                           the primary key; attempts_job: job_id; tasks_account of each account
//	stuck                            tasks_stuck: id; wakes_stuck                      the same
//
// A time is a range of ids in each of them. Type, model and channel together are a kind.
// A list with a filter of the second line first goes from kind to kind by the index, with
// one look at each, and then merges the newest of each kind and status that the filter
// allows. What has a reference is looked at whole where another filter goes with it:
// references are the client's own, and meant to tell one task from the others. Another filter
// beside that of the key, or of the callback's state, reads the tasks of this key, or with this
// state, until the page is full.
// Of what is stuck, all that is overdue is looked at, and all that is parked
// where there is another filter.

// defaultLimit is the length of a list that names none.
const defaultLimit = 20

// Tasks lists tasks, newest first. Returns KindInvalid when After names no task of
// the account, or none at all in a list of all accounts.
func (s *Store) Tasks(ctx context.Context, f mediagate.TaskFilter) (tasks []mediagate.Task, hasMore bool, err error) {
	if f.After != "" {
		named := (&statement{}).say("SELECT id FROM tasks").
			where(selection{TaskFilter: mediagate.TaskFilter{AccountID: f.AccountID}}, "").
			with(" AND id = ?", f.After)
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
func (s *Store) SelectTasks(
	ctx context.Context, f mediagate.TaskFilter,
) (tasks []mediagate.Task, hasMore bool, err error) {
	if f.Limit <= 0 {
		f.Limit = defaultLimit
	}
	list, err := s.listing(ctx, f)
	if err != nil || list == nil {
		return nil, false, dbError(err, "list tasks")
	}
	var rows []taskRow
	if err := read(s.on(ctx), &rows, list.text.String(), list.args...); err != nil {
		return nil, false, dbError(err, "list tasks")
	}
	rows, hasMore = page(rows, f.Limit)
	if tasks, err = convertAll(rows, taskRow.task); err != nil {
		return nil, hasMore, err
	}
	read := make([]*mediagate.Task, len(tasks))
	for i := range tasks {
		read[i] = &tasks[i]
	}
	return tasks, hasMore, dbError(s.noteSourceStates(s.on(ctx), read...), "list tasks")
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

// selection is a filter with what its search names. The tasks are those of the list, or of
// the accounts.
type selection struct {
	mediagate.TaskFilter
	tasks    []string
	accounts []string
}

// mostFound is how many accounts, and how many tasks, a search may name.
const mostFound = 20

// find looks up what the search of a filter names: tasks by their own id or by that of a vendor's
// job, accounts by their id or a part of their name. A single account takes the place of the search.
// none reports that nothing is named so. Returns KindInvalid for a search that names too much.
func (s *Store) find(ctx context.Context, f mediagate.TaskFilter) (found selection, none bool, err error) {
	f.CreatedBefore = wholeMicros(f.CreatedBefore)
	found.TaskFilter = f
	if f.Search == "" {
		return found, false, nil
	}
	type row struct{ ID string }
	var tasks, accounts []row
	if err := read(s.on(ctx), &tasks, `SELECT id FROM tasks WHERE id = ?
		UNION SELECT task_id FROM attempts WHERE job_id <> '' AND job_id = ? LIMIT ?`,
		f.Search, f.Search, mostFound+1); err != nil {
		return found, false, err
	}
	if err := read(s.on(ctx), &accounts, "SELECT id FROM accounts WHERE "+accountNamed+" AND (id = ? OR ? = '') LIMIT ?",
		f.Search, anywhere(f.Search), f.AccountID, f.AccountID, mostFound+1); err != nil {
		return found, false, err
	}
	if max(len(tasks), len(accounts)) > mostFound {
		return found, false, mediagate.Invalid("q", "q names more than %d accounts or tasks: write more of the name", mostFound)
	}
	id := func(r row) string { return r.ID }
	found.tasks, found.accounts = convert(tasks, id), convert(accounts, id)
	if len(tasks) == 0 && len(accounts) == 1 {
		found.AccountID, found.accounts = accounts[0].ID, nil
	}
	return found, len(tasks)+len(accounts) == 0, nil
}

// listing writes the statement of a list; nil where nothing is found that the filter's search
// names.
func (s *Store) listing(ctx context.Context, filter mediagate.TaskFilter) (*statement, error) {
	f, none, err := s.find(ctx, filter)
	switch {
	case err != nil || none:
		return nil, err
	case f.Stuck:
		return s.listingOfStuck(f), nil
	case f.Source != "":
		return listingOfUsers(f), nil
	case len(f.accounts) > 0:
		return listingOfAccounts(s.newest(), f), nil
	case len(f.tasks) > 0:
		return s.listingOfAll(f), nil
	case f.Reference != "" || f.KeyID != "" || f.Webhook != "" || f.Model == "" && f.Type == "" && f.Status == "" && f.Channel == "":
		return s.listingOfAll(f), nil
	default:
		return s.listingOfKinds(ctx, f)
	}
}

// where writes the conditions of a filter, id being how ids are compared; empty leaves
// out those that a range of ids stands for.
func (list *statement) where(f selection, id string) *statement {
	list.say(" WHERE tasks.erased_at IS NULL")
	and := func(set bool, condition string, value any) {
		if set {
			list.with(" AND "+condition+" ?", value)
		}
	}
	and(f.AccountID != "", "tasks.account_id =", f.AccountID)
	and(f.KeyID != "", "tasks.key_id =", f.KeyID)
	switch {
	case len(f.tasks) > 0 && len(f.accounts) > 0:
		list.say(" AND (").in("tasks.id", f.tasks).say(" OR ").in("tasks.account_id", f.accounts).say(")")
	case len(f.tasks) > 0:
		list.say(" AND ").in("tasks.id", f.tasks)
	case len(f.accounts) > 0:
		list.say(" AND ").in("tasks.account_id", f.accounts)
	}
	if f.Source != "" {
		list.with(" AND tasks."+usesFile, f.Source)
	}
	// The planner takes the partial indexes of references and callbacks only when the
	// condition names their own.
	and(f.Reference != "", "tasks.reference <> '' AND tasks.reference =", f.Reference)
	and(f.Model != "", "tasks.model =", f.Model)
	and(f.Type != "", "tasks.type =", f.Type)
	and(f.Status != "", "tasks.status =", f.Status)
	and(f.Channel != "", "tasks.channel =", f.Channel)
	and(f.Webhook != "", "tasks.webhook_state <> '' AND tasks.webhook_state =", f.Webhook)
	if id == "" {
		return list
	}
	and(f.After != "" && !f.OldestFirst, id+" <", f.After)
	and(f.After != "" && f.OldestFirst, id+" >", f.After)
	and(!f.CreatedAfter.IsZero(), "tasks.created_at >", at(f.CreatedAfter))
	and(!f.CreatedAfter.IsZero(), id+" >=", idAt("task_", f.CreatedAfter.Add(-idMargin)))
	and(!f.CreatedBefore.IsZero(), "tasks.created_at <", at(f.CreatedBefore))
	and(!f.CreatedBefore.IsZero(), id+" <", idAt("task_", f.CreatedBefore.Add(idMargin)))
	return list
}

// in writes that a column has one of the values.
func (list *statement) in(column string, values []string) *statement {
	list.say(column, " IN (")
	for i, value := range values {
		if i > 0 {
			list.say(", ")
		}
		list.arg(value)
	}
	return list.say(")")
}

// listingOfAccounts is a list of the tasks of several accounts, and of single tasks: the newest of
// each are merged.
func listingOfAccounts(list *statement, f selection) *statement {
	part := func(f selection) {
		list.say("SELECT id FROM (SELECT id FROM tasks").where(f, "tasks.id").
			say(" ORDER BY id ", order(f), " LIMIT ", readAhead(f.Limit), ") AS newest")
	}
	for i, account := range f.accounts {
		if i > 0 {
			list.say(" UNION ")
		}
		of := selection{TaskFilter: f.TaskFilter}
		of.AccountID = account
		part(of)
	}
	if len(f.tasks) > 0 {
		list.say(" UNION ")
		part(selection{TaskFilter: f.TaskFilter, tasks: f.tasks})
	}
	return list.first(f)
}

// listingOfAll is a list of all tasks, or all of an account, or all with a reference.
// Its limit is a parameter, for which PostgreSQL plans the statement each time anew:
// where nearly all tasks are of one account, a plan for any account may go through
// those of all. Only the indexes of keys and callbacks have the order in which a list of them
// asks for its ids.
func (s *Store) listingOfAll(f selection) *statement {
	id := "tasks.id"
	if f.KeyID != "" || f.Webhook != "" {
		id = s.bytewiseID(id)
	}
	return (&statement{}).say("SELECT ", columnsOf[taskRow]().text, " FROM tasks").
		where(f, id).
		with(" ORDER BY "+id+" "+order(f)+" LIMIT ?", f.Limit+1)
}

// listingOfUsers is a list of the tasks that use a file of another, in the order in which
// the table of sources has them.
func listingOfUsers(f selection) *statement {
	list := (&statement{}).say("SELECT ", columnsOf[taskRow]().of("tasks"), " FROM sources",
		" JOIN tasks ON tasks.id = sources.task_id")
	source := f.Source
	f.Source = ""
	return list.where(f, "sources.task_id").
		with(" AND sources.source_id = ?", source).
		with(" ORDER BY sources.task_id "+order(f)+" LIMIT ?", f.Limit+1)
}

// kindOfTask is what the index has in front of the id.
type kindOfTask struct {
	Type    mediagate.Type   `json:"type"`
	Model   string           `json:"model"`
	Channel string           `json:"channel"`
	Status  mediagate.Status `json:"status"`
}

// kindsOfTasks goes from kind to kind by the index of the account, or of all.
func kindsOfTasks(accountID string) *statement {
	of := func(st *statement) *statement {
		st.say("SELECT id FROM tasks WHERE erased_at IS NULL")
		if accountID != "" {
			st.with(" AND account_id = ?", accountID)
		}
		return st
	}
	st := of((&statement{}).say("WITH RECURSIVE kinds (id) AS (SELECT id FROM ("))
	of(st.say(" ORDER BY type, model, channel LIMIT 1) AS first UNION ALL SELECT ("))
	return st.say(` AND (type, model, channel) > (was.type, was.model, was.channel)
			ORDER BY type, model, channel LIMIT 1)
			FROM kinds JOIN tasks AS was ON was.id = kinds.id)
		SELECT type, model, channel FROM kinds JOIN tasks ON tasks.id = kinds.id`)
}

// listingOfKinds is a list of the tasks of some kinds: the newest of each are merged.
func (s *Store) listingOfKinds(ctx context.Context, f selection) (*statement, error) {
	var kinds []struct {
		Type    mediagate.Type
		Model   string
		Channel string
	}
	look := kindsOfTasks(f.AccountID)
	if err := read(s.on(ctx), &kinds, look.text.String(), look.args...); err != nil {
		return nil, err
	}
	ranges := []kindOfTask{}
	for _, k := range kinds {
		if !allows(f.Type, k.Type) || !allows(f.Model, k.Model) || !allows(f.Channel, k.Channel) {
			continue
		}
		for _, status := range mediagate.Statuses() {
			if allows(f.Status, status) {
				ranges = append(ranges, kindOfTask{k.Type, k.Model, k.Channel, status})
			}
		}
	}
	text, err := jsonText(ranges)
	if err != nil {
		return nil, err
	}
	f.Type, f.Model, f.Channel, f.Status = "", "", "", "" // the ranges have them
	list := s.newest()
	if s.lite { // which has no LATERAL
		list.with("SELECT newest.value AS id FROM "+s.rowsOf(kindColumns)+
			" JOIN json_each((SELECT json_group_array(id) FROM (", text)
	} else {
		list.with("SELECT newest.id FROM "+s.rowsOf(kindColumns)+" CROSS JOIN LATERAL (", text)
	}
	list.say("SELECT id FROM tasks").where(f, s.bytewiseID("tasks.id")).
		say(` AND type = v.type AND model = v.model AND channel = v.channel AND status = v.status
			ORDER BY `, s.bytewiseID("id"), " ", order(f), " LIMIT ", readAhead(f.Limit), ")")
	if s.lite {
		list.say("))")
	}
	return list.say(" AS newest").first(f), nil
}

// allows reports that a filter leaves a value open, or names it.
func allows[T ~string](filter, value T) bool { return filter == "" || filter == value }

// order is that of the ids in a list.
func order(f selection) string {
	if f.OldestFirst {
		return "ASC"
	}
	return "DESC"
}

// kindColumns are those of kindOfTask.
const kindColumns = "type text, model text, channel text, status text"

// readAhead is how many rows a list of that length reads, as text: one more, and so
// many that the statements for all lengths are few.
func readAhead(limit int) string {
	switch {
	case limit <= defaultLimit:
		limit = defaultLimit
	case limit <= 100:
		limit = 100
	}
	return strconv.Itoa(limit + 1)
}

// bytewise is the order of ids in the indexes of filtered lists. In that order no
// other index has the tasks: so the planner cannot think that it finds them sooner
// in that of all.
const bytewise = ` COLLATE "C"`

// idMargin is more than a task's creation and the time in its id may be apart. Both
// are one reading of the clock, but were two in rows of old.
const idMargin = time.Minute

// idAt is less than the ids with this prefix that were made at that time or later, and more
// than those of earlier ones.
func idAt(prefix string, t time.Time) string {
	var id ulid.ULID
	if t.After(time.UnixMilli(0)) {
		_ = id.SetTime(min(ulid.Timestamp(t), ulid.MaxTime())) // no more than it holds
	}
	return prefix + id.String()
}

// listingOfStuck is a list of tasks that are parked, or overdue.
func (s *Store) listingOfStuck(f selection) *statement {
	list := s.newest()
	of := func(from, and, id string) {
		list.say("SELECT id FROM (SELECT tasks.id FROM ", from).where(f, s.bytewiseID(id)).
			say(" AND ", openTask, " AND ", and, " ORDER BY ", s.bytewiseID(id), " DESC").
			say(" LIMIT ", readAhead(f.Limit), ") AS newest")
	}
	of("tasks", "tasks.wait_reason <> ''", "tasks.id")
	list.say(" UNION ")
	of("wakes JOIN tasks ON tasks.id = wakes.task_id", overdueRun, "wakes.task_id")
	return list.first(f)
}

const (
	openTask   = "tasks.status IN ('pending', 'processing')"
	overdueRun = "wakes.kind = 'run' AND wakes.tries >= 3" // mediagate.StuckTries
)

// newest begins a list of the tasks whose ids a query names, and first ends it.
func (s *Store) newest() *statement {
	return (&statement{}).say("SELECT ", columnsOf[taskRow]().of("tasks"), " FROM (SELECT id FROM (")
}

func (list *statement) first(f selection) *statement {
	return list.say(") AS found ORDER BY id ", order(f), " LIMIT ", readAhead(f.Limit), ") AS listed").
		say(" JOIN tasks ON tasks.id = listed.id ORDER BY tasks.id ", order(f))
}

// bytewiseID is an id as the indexes of filtered lists order it.
func (s *Store) bytewiseID(column string) string {
	if s.lite {
		return column
	}
	return column + bytewise
}

// Labels reads what operators' lists show beside tasks, by their ids.
func (s *Store) Labels(ctx context.Context, ids ...string) (map[string]mediagate.TaskLabel, error) {
	list, err := jsonText(ids)
	if err != nil {
		return nil, err
	}
	var rows []struct {
		ID string
		mediagate.TaskLabel
	}
	if err := read(s.on(ctx), &rows, `SELECT t.id, t.channel, a.name FROM tasks t JOIN accounts a ON a.id = t.account_id
		WHERE t.id IN `+s.inList(), list); err != nil {
		return nil, dbError(err, "read labels of tasks")
	}
	labels := make(map[string]mediagate.TaskLabel, len(rows))
	for _, r := range rows {
		labels[r.ID] = r.TaskLabel
	}
	return labels, nil
}

// CountTasks counts what a filter selects. It reads all of that.
func (s *Store) CountTasks(ctx context.Context, f mediagate.TaskFilter) (n int, err error) {
	if f.Stuck {
		counts, err := s.StuckCounts(ctx, f)
		for _, of := range counts {
			n += of
		}
		return n, err
	}
	found, none, err := s.find(ctx, f)
	if err != nil || none {
		return 0, dbError(err, "count tasks")
	}
	count := (&statement{}).say("SELECT COUNT(*) AS n FROM tasks").where(found, "tasks.id")
	row, err := one[struct{ N int }](s.on(ctx), count.text.String(), count.args...)
	if err != nil || row == nil {
		return 0, dbError(err, "count tasks")
	}
	return row.N, nil
}

// StuckCounts counts the tasks of a filter that are stuck, by their reason. It reads all that
// are stuck.
func (s *Store) StuckCounts(ctx context.Context, f mediagate.TaskFilter) (map[string]int, error) {
	found, none, err := s.find(ctx, f)
	if err != nil || none {
		return nil, dbError(err, "count stuck tasks")
	}
	var rows []struct {
		Reason string
		N      int
	}
	count := (&statement{}).say("SELECT wait_reason, COUNT(*) FROM tasks").where(found, "tasks.id").
		say(" AND ", openTask, " AND wait_reason <> '' GROUP BY wait_reason").
		say(" UNION ALL SELECT '", mediagate.ReasonRunOverdue, "', COUNT(*)").
		say(" FROM wakes JOIN tasks ON tasks.id = wakes.task_id").where(found, "tasks.id").
		say(" AND ", openTask, " AND tasks.wait_reason = '' AND ", overdueRun)
	if err := read(s.on(ctx), &rows, count.text.String(), count.args...); err != nil {
		return nil, dbError(err, "count stuck tasks")
	}
	counts := map[string]int{}
	for _, r := range rows {
		if r.N > 0 {
			counts[r.Reason] = r.N
		}
	}
	return counts, nil
}
