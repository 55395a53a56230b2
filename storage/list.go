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
// A filter by time is a range of ids in each of these indexes. Type, model and channel together
// are a kind. A list by a part of a kind, or by the status, first reads one row of each kind from
// the index, and then merges the newest tasks of each kind and status that the filter allows.
//
// Some combinations read more rows than they show. With another filter, a list by reference reads
// all tasks that have the reference; clients choose references to tell tasks apart, so these are
// few. With another filter, a list by key or by the callback's state reads tasks with that key or
// state until the page is full. A list of stuck tasks reads all overdue tasks, and with another
// filter all parked ones.

// defaultLimit is the length of a list whose filter has no limit.
const defaultLimit = 20

// Tasks lists tasks, newest first. Returns KindInvalid when After names no task, or when the list is
// that of an account and After names a task of another account.
func (s *Store) Tasks(ctx context.Context, f mediagate.TaskFilter) (tasks []mediagate.Task, hasMore bool, err error) {
	if f.After != "" {
		// An erased task is not found either, since where leaves erased tasks out.
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

// SelectTasks lists tasks as Tasks does, but After need not be the id of a task. So a job that works
// through a list page by page can go on even if the last task of a page was deleted.
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
	// Each listing reads one row beyond the limit, if there is one.
	rows, hasMore = page(rows, f.Limit)
	if tasks, err = convertAll(rows, taskRow.listed); err != nil {
		return nil, hasMore, err
	}
	// A further statement reads the statuses of the sources of all listed tasks.
	read := make([]*mediagate.Task, len(tasks))
	for i := range tasks {
		read[i] = &tasks[i]
	}
	return tasks, hasMore, dbError(s.noteSourceStates(s.on(ctx), read...), "list tasks")
}

// wholeMicros rounds t up to the precision of the columns. The zero time means no time: it stays
// zero, and no other time is rounded to it.
//
// Example: a filter "before 12:00:00.0000001" must still include a task of 12:00:00.000000.
// Truncated to microseconds, the filter would leave it out.
func wholeMicros(t time.Time) time.Time {
	whole := t.Truncate(time.Microsecond)
	if up := whole.Add(time.Microsecond); whole.Before(t) && !up.IsZero() {
		return up
	}
	return whole
}

// selection is a filter with the tasks and accounts that its search has found. It selects these
// tasks and all tasks of these accounts.
//
// With two accounts and a task, for example, the list has the tasks of both accounts and that
// task.
type selection struct {
	mediagate.TaskFilter
	tasks    []string
	accounts []string
}

// mostFound is how many accounts, and how many tasks, a search may find.
//
// A list reads the newest tasks of each account that is found, so the bound limits what a list
// costs.
const mostFound = 20

// find looks up the search of a filter: tasks by their own id or the id of a vendor's job, accounts by
// their id or a part of their name. If the search finds only a single account, that account becomes
// the filter's. none reports that the search found nothing. Returns KindInvalid for a search that
// finds more than mostFound.
func (s *Store) find(ctx context.Context, f mediagate.TaskFilter) (found selection, none bool, err error) {
	f.CreatedBefore = wholeMicros(f.CreatedBefore)
	found.TaskFilter = f
	if f.Search == "" {
		return found, false, nil
	}
	type row struct{ ID string }
	var tasks, accounts []row
	// The primary key and the index attempts_job serve the two halves. UNION removes a task that both
	// find.
	if err := read(s.on(ctx), &tasks, `SELECT id FROM tasks WHERE id = ?
		UNION SELECT task_id FROM attempts WHERE job_id <> '' AND job_id = ? LIMIT ?`,
		f.Search, f.Search, mostFound+1); err != nil {
		return found, false, err
	}
	// If the filter names an account, the search may find only that one.
	query := "SELECT id FROM accounts WHERE " + accountNamed + " AND (id = ? OR ? = '') LIMIT ?"
	if err := read(s.on(ctx), &accounts, query,
		f.Search, anywhere(f.Search), f.AccountID, f.AccountID, mostFound+1); err != nil {
		return found, false, err
	}
	if max(len(tasks), len(accounts)) > mostFound {
		return found, false, mediagate.Invalid("q",
			"q names more than %d accounts or tasks: write more of the name", mostFound)
	}
	id := func(r row) string { return r.ID }
	found.tasks, found.accounts = convert(tasks, id), convert(accounts, id)
	// With a single account the list becomes that of an account, for which every filter has an index.
	if len(tasks) == 0 && len(accounts) == 1 {
		found.AccountID, found.accounts = accounts[0].ID, nil
	}
	return found, len(tasks)+len(accounts) == 0, nil
}

// listing returns the query of a list, or nil if the filter's search finds nothing.
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
	// These filters have an index of their own. A list without a filter, or only with times, goes by
	// the primary key or by tasks_account. All other filters are parts of a kind, or the status.
	case f.Reference != "" || f.KeyID != "" || f.Webhook != "",
		f.Model == "" && f.Type == "" && f.Status == "" && f.Channel == "":
		return s.listingOfAll(f), nil
	default:
		return s.listingOfKinds(ctx, f)
	}
}

// where appends the conditions of a filter. id is the expression with which ids are compared. If it
// is empty, the conditions of time and After are left out.
//
// The conditions of time select a range of ids, so that an index on the id serves them. The range
// is idMargin wider at both ends; the condition on created_at decides exactly.
func (list *statement) where(f selection, id string) *statement {
	// The partial indexes of lists leave erased tasks out, and serve only queries with this
	// condition.
	list.say(" WHERE tasks.erased_at IS NULL")
	and := func(set bool, condition string, value any) {
		if set {
			list.with(" AND "+condition+" ?", value)
		}
	}
	and(f.AccountID != "", "tasks.account_id =", f.AccountID)
	and(f.KeyID != "", "tasks.key_id =", f.KeyID)
	switch {
	// A search selects the tasks that it found and all tasks of the accounts that it found.
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
	// The planner uses the partial indexes of references and callbacks only if the query repeats
	// their conditions.
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

// in appends the condition that a column has one of the values.
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

// listingOfAccounts lists the tasks of several accounts, and single tasks. It merges the newest of
// each account.
//
// Each part reads at most one page by tasks_account, so the whole reads one page for each account.
// UNION removes a task that two parts find.
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

// listingOfAll lists all tasks, or all tasks of an account, a reference, a key or a callback's state.
// Its limit is a parameter, because PostgreSQL then plans the query anew for each call. Where nearly
// all tasks belong to one account, a plan that is shared by all accounts might read the tasks of
// all. The indexes of keys and callbacks order ids bytewise.
func (s *Store) listingOfAll(f selection) *statement {
	id := "tasks.id"
	if f.KeyID != "" || f.Webhook != "" {
		id = s.bytewiseID(id)
	}
	return (&statement{}).say("SELECT ", columnsOf[taskRow]().text, " FROM tasks").
		where(f, id).
		with(" ORDER BY "+id+" "+order(f)+" LIMIT ?", f.Limit+1)
}

// listingOfUsers lists the tasks that use a file of another task, in the order of the table sources.
//
// The primary key of sources (source, task) has the ids of one source in their order, so the LIMIT
// ends the read early.
func listingOfUsers(f selection) *statement {
	list := (&statement{}).say("SELECT ", columnsOf[taskRow]().of("tasks"), " FROM sources",
		" JOIN tasks ON tasks.id = sources.task_id")
	// where would add the source as a condition on tasks; here the join stands for it.
	source := f.Source
	f.Source = ""
	return list.where(f, "sources.task_id").
		with(" AND sources.source_id = ?", source).
		with(" ORDER BY sources.task_id "+order(f)+" LIMIT ?", f.Limit+1)
}

// kindOfTask has the columns that precede the id in the index of kinds.
type kindOfTask struct {
	Type    mediagate.Type   `json:"type"`
	Model   string           `json:"model"`
	Channel string           `json:"channel"`
	Status  mediagate.Status `json:"status"`
}

// kindsOfTasks selects the kinds of the account's tasks, or of all tasks. It steps through the index
// from one kind to the next and reads one row of each.
//
// The statement is a loop: the first SELECT finds the first kind, and each further round finds the
// first row after the kind that was found last. A round is a scalar subquery, which returns a
// single column: the id of a row of the kind. There are some dozens of kinds (ADR 22), so the loop
// reads some dozens of rows, however many tasks there are.
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

// listingOfKinds lists the tasks of the kinds that the filter allows. It merges the newest of each.
//
// For each allowed kind and status the statement reads the newest tasks by tasks_of_account or
// tasks_of_all, up to a page, and keeps the newest of all. Example: a filter status=failed with 20
// kinds and a page of 20 reads at most 420 index entries.
func (s *Store) listingOfKinds(ctx context.Context, f selection) (*statement, error) {
	var kinds []struct {
		Type    mediagate.Type
		Model   string
		Channel string
	}
	query := kindsOfTasks(f.AccountID)
	if err := read(s.on(ctx), &kinds, query.text.String(), query.args...); err != nil {
		return nil, err
	}
	ranges := []kindOfTask{}
	for _, k := range kinds {
		if !allows(f.Type, k.Type) || !allows(f.Model, k.Model) || !allows(f.Channel, k.Channel) {
			continue
		}
		// The status precedes the id in the index, so each status is a range of its own.
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
	// The ranges stand for these conditions.
	f.Type = ""
	f.Model = ""
	f.Channel = ""
	f.Status = ""
	list := s.newest()
	// Both forms run the inner SELECT once for each range v.
	if s.lite { // SQLite has no LATERAL
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

// allows reports whether a filter is empty or equals the value.
func allows[T ~string](filter, value T) bool { return filter == "" || filter == value }

// order returns the order of the ids in a list.
func order(f selection) string {
	if f.OldestFirst {
		return "ASC"
	}
	return "DESC"
}

// kindColumns are the columns of a kindOfTask, for rowsOf.
const kindColumns = "type text, model text, channel text, status text"

// readAhead returns the LIMIT of a list: one row more than it shows. It rounds the limit up, so that
// few different statements are prepared.
//
// The number is part of the statement's text: the limits 1 to 20 share one statement, 21 to 100
// another. A longer limit is used as it is.
func readAhead(limit int) string {
	switch {
	case limit <= defaultLimit:
		limit = defaultLimit
	case limit <= 100:
		limit = 100
	}
	return strconv.Itoa(limit + 1)
}

// bytewise is the collation of ids in the indexes of filtered lists. The primary key has another
// collation, so the planner cannot choose to read it in order instead of the filtered index.
const bytewise = ` COLLATE "C"`

// idMargin is more than the difference between a task's creation time and the time in its id. Both
// come from one reading of the clock, but in old rows from two.
const idMargin = time.Minute

// idAt returns the least id with this prefix that can have been made at t, to the millisecond. Ids
// that were made earlier are less.
func idAt(prefix string, t time.Time) string {
	// A time before 1970 has the least id of all, since a ULID cannot hold it. A time too far ahead
	// is cut to the last one that it can hold.
	var id ulid.ULID
	if t.After(time.UnixMilli(0)) {
		_ = id.SetTime(min(ulid.Timestamp(t), ulid.MaxTime()))
	}
	return prefix + id.String()
}

// listingOfStuck lists tasks that are parked or overdue.
//
// The partial indexes tasks_stuck and wakes_stuck hold only parked tasks and overdue wakes. Because
// of UNION, a task that is both is shown once.
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
	// These texts repeat the conditions of the partial indexes tasks_stuck and wakes_stuck; the
	// planner uses an index only for a query that repeats its condition.
	openTask   = "tasks.status IN ('pending', 'processing')"
	overdueRun = "wakes.kind = 'run' AND wakes.tries >= 3" // mediagate.StuckTries
)

// newest begins a list of the tasks whose ids a subquery selects. The caller appends the subquery and
// then calls first.
//
// The outer SELECT reads whole rows only for the page; the subquery reads ids from an index.
func (s *Store) newest() *statement {
	return (&statement{}).say("SELECT ", columnsOf[taskRow]().of("tasks"), " FROM (SELECT id FROM (")
}

// first ends a list that newest began: it keeps the first ids and reads their tasks.
func (list *statement) first(f selection) *statement {
	return list.say(") AS found ORDER BY id ", order(f), " LIMIT ", readAhead(f.Limit), ") AS listed").
		say(" JOIN tasks ON tasks.id = listed.id ORDER BY tasks.id ", order(f))
}

// bytewiseID is the expression of an id in the collation of the indexes of filtered lists.
//
// SQLite compares text by its bytes, so it needs no collation.
func (s *Store) bytewiseID(column string) string {
	if s.lite {
		return column
	}
	return column + bytewise
}

// Labels reads the channel and the account's name of tasks, for operators' lists.
//
// Unknown ids have no entry in the map.
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

// CountTasks counts the tasks that a filter selects. It reads all of them.
//
// The API counts only where a caller asks for it (total=true, ADR 22).
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

// StuckCounts counts the stuck tasks of a filter by their reason. It reads all stuck tasks.
//
// A parked task counts under the reason of its wait. An overdue task without such a reason counts
// as ReasonRunOverdue, so each task counts once. Reasons without a task are left out.
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
