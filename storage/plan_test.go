package storage_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/pgtest"
)

// manyTasks is a history of one account that is much alike, and a single task of
// another: what a planner may take for a table in which every row matches.
const manyTasks = 20_000

// fillHistory makes tasks of one model, type and status, a minute apart, with their
// ledger, then has the planner look at them.
func fillHistory(t *testing.T, url string, now time.Time) {
	t.Helper()
	db := openRaw(t, url)
	defer db.Close() // see rowsRead
	for _, statement := range []string{
		`INSERT INTO tasks (id, account_id, key_id, model, type, status, progress, params, document, hold, reference, channel, webhook_state, created_at, ended_at, deadline_at)
			SELECT 'task_' || (SELECT string_agg(substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', ((floor(extract(epoch FROM at) * 1000)::bigint >> 5 * place) & 31)::int + 1, 1), ''
					ORDER BY place DESC) FROM generate_series(0, 9) AS place) || lpad(i::text, 16, '0'),
				CASE i WHEN 1 THEN 'acc_one' ELSE 'acc_many' END, 'key', 'alpha-v3', 'video', 'completed', 100, repeat('x', 300), '{}', 1,
				CASE i WHEN 2 THEN 'r1' ELSE '' END, CASE i % 2 WHEN 0 THEN 'kling-a' ELSE 'kling-b' END,
				CASE WHEN i IN (3, 4) THEN 'pending' WHEN i <= $2 / 2 THEN 'delivered' ELSE '' END, at, at, at
			FROM (SELECT i, $1::timestamptz - ($2 - i) * interval '1 minute' AS at FROM generate_series(1, $2::int) AS i) AS n`,
		`INSERT INTO ledger_transfers (id, kind, account_id, key_id, task_id, amount, at)
			SELECT 'txn_' || substr(id, 6, 10) || k.kind || substr(id, 17), k.kind, account_id, key_id, id, 1, created_at
			FROM tasks, (VALUES ('hold'), ('post')) AS k (kind) WHERE $1::timestamptz IS NOT NULL AND $2::int > 0`,
	} {
		if _, err := db.ExecContext(t.Context(), statement, now, manyTasks); err != nil {
			t.Fatal(err)
		}
	}
	execute(t, db, "VACUUM ANALYZE tasks, ledger_transfers")
}

// parkSome opens some of the tasks again, which are parked or overdue.
func parkSome(t *testing.T, url string) {
	t.Helper()
	db := openRaw(t, url)
	defer db.Close() // see rowsRead
	execute(t, db,
		`UPDATE tasks SET status = 'pending', progress = 0, ended_at = NULL, wait = CASE right(id, 2) WHEN '00' THEN '' ELSE 'parked' END,
			wait_reason = CASE right(id, 2) WHEN '00' THEN '' ELSE 'storage_unavailable' END,
			wait_since = CASE right(id, 2) WHEN '00' THEN NULL ELSE created_at END, wait_ends_at = CASE right(id, 2) WHEN '00' THEN NULL ELSE created_at END
			WHERE id IN (SELECT id FROM tasks WHERE account_id = 'acc_many' ORDER BY id LIMIT 1000)`,
		`INSERT INTO wakes (task_id, kind, account_id, wake_at, tries) SELECT id, 'run', account_id, created_at, CASE WHEN wait = '' THEN 4 ELSE 0 END
			FROM tasks WHERE status = 'pending'`,
		`VACUUM ANALYZE tasks, wakes`)
}

// planNode is a step of a plan that was carried out.
type planNode struct {
	Type    string     `json:"Node Type"`
	Index   string     `json:"Index Name"`
	Rows    float64    `json:"Actual Rows"`
	Removed float64    `json:"Rows Removed by Filter"`
	Hit     float64    `json:"Shared Hit Blocks"` // with those of its parts
	Missed  float64    `json:"Shared Read Blocks"`
	Plans   []planNode `json:"Plans"`
}

// scans says that a table was read from end to end.
func (n planNode) scans() bool {
	return n.Type == "Seq Scan" || slices.ContainsFunc(n.Plans, planNode.scans)
}

// prepared is the call of a statement, prepared as the planner is to treat it.
func prepared(t *testing.T, conn *sql.Conn, l storage.Listing, mode string) string {
	t.Helper()
	var text, values strings.Builder
	for i, part := range strings.Split(l.Text, "?") {
		if i > 0 {
			fmt.Fprintf(&text, "$%d", i)
		}
		text.WriteString(part)
	}
	for i, arg := range l.Args {
		if i > 0 {
			values.WriteString(", ")
		}
		if n, ok := arg.(int); ok {
			fmt.Fprint(&values, n)
			continue
		}
		if at, ok := arg.(time.Time); ok {
			arg = at.Format(time.RFC3339Nano)
		}
		fmt.Fprintf(&values, "'%v'", arg)
	}
	for _, statement := range []string{"SET plan_cache_mode = " + mode, "DEALLOCATE ALL", "PREPARE list AS " + text.String()} {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if len(l.Args) == 0 {
		return "EXECUTE list"
	}
	return "EXECUTE list(" + values.String() + ")"
}

// planOf carries a statement out and returns how. A plan is made for the values
// that are given, or for any.
func planOf(t *testing.T, conn *sql.Conn, l storage.Listing, mode string) planNode {
	t.Helper()
	call := prepared(t, conn, l, mode)
	var found []byte
	if err := conn.QueryRowContext(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+call).Scan(&found); err != nil {
		t.Fatalf("%s: %v", call, err)
	}
	var plans []struct{ Plan planNode }
	if err := json.Unmarshal(found, &plans); err != nil {
		t.Fatal(err)
	}
	return plans[0].Plan
}

// However long an account's history is, and whatever the planner takes it for, a
// list reads what it shows.
func TestListsReadWhatTheyShow(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC().Truncate(time.Microsecond)
	url := pgtest.New(t)
	fillHistory(t, url, now)
	parkSome(t, url)
	s := openPostgres(t, url, storage.Config{})
	tasks, _, err := s.Tasks(t.Context(), mediagate.TaskFilter{AccountID: "acc_many", CreatedBefore: now.Add(-manyTasks / 2 * time.Minute), Limit: 1})
	if err != nil || len(tasks) != 1 {
		t.Fatalf("%d tasks in the middle: %v", len(tasks), err)
	}
	middle := tasks[0].ID
	transfers, _, err := s.Ledger(t.Context(), "acc_many", middle, "", 2)
	if err != nil || len(transfers) != 2 {
		t.Fatalf("%d transfers of a task: %v", len(transfers), err)
	}
	db := openRaw(t, url+"&default_query_exec_mode=simple_protocol")
	execute(t, db, `INSERT INTO accounts (id, name, created_at)
		VALUES ('acc_many', 'one of many', now()), ('acc_one', 'one of many', now())`)
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })

	const custom, generic = "force_custom_plan", "force_generic_plan"
	// Blocks: the way down an index for each range, and both the index and the
	// table for each row. The whole history has hundreds in each index. There are two
	// kinds of tasks, each with five statuses.
	check := func(name, mode string, l storage.Listing) {
		t.Helper()
		plan := planOf(t, conn, l, mode)
		const ranges = 12
		most := 8*ranges + 5*plan.Rows
		if blocks := plan.Hit + plan.Missed; blocks > most || plan.scans() {
			t.Errorf("%s, %s: %v blocks read for %v rows, want at most %v and no table as a whole\n%+v", name, mode, blocks, plan.Rows, most, plan)
		}
	}
	lists := func(of, accountID string, filters map[string]mediagate.TaskFilter) {
		t.Helper()
		for name, filter := range filters {
			filter.AccountID = accountID
			l, err := s.Listing(t.Context(), filter)
			if err != nil {
				t.Fatal(err)
			}
			check(name+" of "+of, custom, l)
			if accountID == "" || strings.Contains(l.Text, "LATERAL") { // all of an account are planned anew each time
				check(name+" of "+of, generic, l)
			}
		}
	}
	filters := map[string]mediagate.TaskFilter{
		"all":                    {},
		"after":                  {After: middle},
		"created, few":           {CreatedAfter: now.Add(-4 * time.Minute)},
		"created, none":          {CreatedAfter: now.Add(time.Hour)},
		"created, long ago":      {CreatedBefore: now.Add(-2 * manyTasks * time.Minute)},
		"reference":              {Reference: "r1"},
		"reference, none":        {Reference: "r2"},
		"status, many":           {Status: mediagate.StatusCompleted},
		"status, few":            {Status: mediagate.StatusPending},
		"status, none":           {Status: mediagate.StatusFailed},
		"status, after":          {Status: mediagate.StatusCompleted, After: middle},
		"status, created, none":  {Status: mediagate.StatusCompleted, CreatedAfter: now.Add(time.Hour)},
		"type, many":             {Type: mediagate.TypeVideo},
		"type, none":             {Type: mediagate.TypeImage},
		"model, many":            {Model: "alpha-v3"},
		"model, after":           {Model: "alpha-v3", After: middle},
		"model, none":            {Model: "none"},
		"model, created, few":    {Model: "alpha-v3", CreatedAfter: now.Add(-4 * time.Minute)},
		"model, type and status": {Model: "alpha-v3", Type: mediagate.TypeVideo, Status: mediagate.StatusFailed},
		"channel":                {Channel: "kling-a"},
		"channel, none":          {Channel: "none"},
		"channel, failed":        {Channel: "kling-a", Status: mediagate.StatusFailed},
		"channel, created":       {Channel: "kling-a", CreatedBefore: now.Add(-manyTasks / 2 * time.Minute)},
		"callback, many":         {Webhook: mediagate.WebhookDelivered},
		"callback, few":          {Webhook: mediagate.WebhookPending},
		"callback, none":         {Webhook: mediagate.WebhookDropped},
		"callback, after":        {Webhook: mediagate.WebhookDelivered, After: middle},
		"callback, created":      {Webhook: mediagate.WebhookDelivered, CreatedAfter: now.Add(time.Hour)},
		"abandoned":              {Webhook: mediagate.WebhookAbandoned},
	}
	lists("all accounts", "", map[string]mediagate.TaskFilter{
		"stuck":                  {Stuck: true},
		"search, task":           {Search: middle},
		"search, accounts":       {Search: "one of many"},
		"search, accounts after": {Search: "one of many", After: middle},
	})
	for _, account := range []string{"", "acc_many", "acc_one", "acc_none"} {
		lists("account "+account, account, filters)
		check("kinds of account "+account, custom, storage.KindsListing(account))
	}
	for _, account := range []string{"acc_many", "acc_one", "acc_none"} {
		lists("account "+account, account, map[string]mediagate.TaskFilter{
			"key, many":    {KeyID: "key"},
			"key, none":    {KeyID: "none"},
			"key, after":   {KeyID: "key", After: middle},
			"key, created": {KeyID: "key", CreatedAfter: now.Add(time.Hour)},
		})
	}
	for name, l := range map[string]storage.Listing{
		"ledger":           storage.LedgerListing("acc_many", "", nil, 20),
		"ledger, after":    storage.LedgerListing("acc_many", "", &transfers[1], 20),
		"ledger of a task": storage.LedgerListing("acc_many", middle, nil, 20),
		"ledger of no one": storage.LedgerListing("acc_none", "", nil, 20),
		"of another's":     storage.LedgerListing("acc_one", middle, nil, 20),
	} {
		for _, mode := range []string{custom, generic} {
			check(name, mode, l)
		}
	}
}
