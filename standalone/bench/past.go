package main

import (
	"context"
	"fmt"
	"net/http"
)

// What an account with a past has under way, and over how many days its tasks are
// spread. Each task that has ended has five entries in the ledger.
const (
	openTasks = 200
	pastDays  = 180
)

// pastTasksStatement makes the tasks that a busy account leaves behind: $1 is the
// account, $2 the key, $3 the number of tasks, $4 how many of them are open, $5 over
// how many days they are spread.
const pastTasksStatement = `INSERT INTO tasks (id, account_id, key_id, model, type, status, progress, params, plan, charges, hold, cost, created_at, started_at, ended_at,
			deadline_at, channel, provider)
		SELECT 'task_' || lpad(i::text, 26, '0'), $1, $2, 'model-' || i % 5, 'video', CASE WHEN i > $3 - $4 THEN 'processing' ELSE 'completed' END,
			CASE WHEN i > $3 - $4 THEN 50 ELSE 100 END, '{}', '{}', '[]', 2000, CASE WHEN i > $3 - $4 THEN 0 ELSE 1000 END,
			t, t, CASE WHEN i > $3 - $4 THEN NULL ELSE t + interval '2 minutes' END, t + interval '2 hours', 'kling', 'kling'
		FROM (SELECT i, now() - ($3 - i) * interval '1 second' * ($5 * 86400.0 / $3) - interval '5 minutes' AS t FROM generate_series(1, $3::bigint) AS i) AS n`

// pastStatements make the ledger of such tasks.
var pastStatements = []string{
	`INSERT INTO ledger_transfers (id, kind, account_id, key_id, task_id, amount, at, model, provider, status)
		SELECT 'txn_' || substr(id, 6, 10) || CASE kind WHEN 'hold' THEN 'A' ELSE 'B' END || substr(id, 17), kind, account_id, key_id, id, CASE kind WHEN 'hold' THEN 2000 ELSE 1000 END,
			CASE kind WHEN 'hold' THEN created_at ELSE ended_at END, CASE kind WHEN 'post' THEN model END, CASE kind WHEN 'post' THEN provider END, CASE kind WHEN 'post' THEN 'completed' END
		FROM tasks, (VALUES ('hold'), ('post')) AS k (kind) WHERE account_id = $1 AND (kind = 'hold' OR ended_at IS NOT NULL) ORDER BY created_at`,
	`INSERT INTO ledger_entries (transfer_id, bucket, account_id, key_id, amount)
		SELECT t.id, e.bucket, t.account_id, t.key_id, e.amount FROM ledger_transfers t JOIN (VALUES ('hold', 'available', -2000), ('hold', 'held', 2000),
			('post', 'held', -2000), ('post', 'spent', 1000), ('post', 'available', 1000)) AS e (kind, bucket, amount) ON e.kind = t.kind
		WHERE t.account_id = $1`,
	`INSERT INTO usage_sums (account_id, span, begins_at, key_id, model, provider, cost, released, taken, completed)
		SELECT account_id, span, date_trunc(span, at, 'UTC'), key_id, model, provider, SUM(spent), SUM(released), SUM(taken), SUM(completed) FROM (
			SELECT account_id, key_id, model, provider, ended_at AS at, cost AS spent, hold AS released, 0 AS taken, 1 AS completed FROM tasks WHERE account_id = $1 AND ended_at IS NOT NULL
			UNION ALL SELECT account_id, key_id, model, provider, created_at, 0, 0, hold, 0 FROM tasks WHERE account_id = $1 AND ended_at IS NOT NULL) AS c, (VALUES ('hour'), ('day')) AS s (span)
		GROUP BY 1, 2, 3, 4, 5, 6`,
	`UPDATE keys SET in_flight = $2::bigint, held = $2::bigint * 2000, spent = $3::bigint * 1000 WHERE id = $1`,
	`UPDATE accounts SET available = available - $2::bigint * 2000 - $3::bigint * 1000, in_flight = $2::bigint, held = $2::bigint * 2000, spent = $3::bigint * 1000 WHERE id = $1`,
}

// fillPast gives the installation's account a past.
func (g *gateway) fillPast(ctx context.Context, tasks int64) error {
	return g.fillPastOf(ctx, pastTasksStatement, tasks, openTasks)
}

// fillPastOf is fillPast with tasks as a statement makes them.
func (g *gateway) fillPastOf(ctx context.Context, statement string, tasks, open int64) (err error) {
	ended := tasks - open
	statements := append([]string{statement}, pastStatements...)
	for i, args := range [][]any{
		{g.key.AccountID, g.key.ID, tasks, open, pastDays},
		{g.key.AccountID},
		{g.key.AccountID},
		{g.key.AccountID},
		{g.key.ID, open, ended},
		{g.key.AccountID, open, ended},
	} {
		if _, err := g.tables.ExecContext(ctx, statements[i], args...); err != nil {
			return fmt.Errorf("fill the past, step %d: %w", i+1, err)
		}
	}
	_, err = g.tables.ExecContext(ctx, "VACUUM ANALYZE")
	return err
}

// ask reads one answer, as a client or as an operator.
func (g *gateway) ask(ctx context.Context, path string, admin bool) error {
	if !admin {
		_, err := g.get(ctx, path)
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+path, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+g.Config.AdminKey)
	_, err = exchange(g.http, req)
	return err
}
