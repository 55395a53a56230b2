package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	historySmaller = 50      // times is the other account's history smaller
	historyOpen    = 10      // tasks of each that have not ended
	historyAim     = 1 / 1.5 // of the answers a second
)

// measureHistory compares what an account with a large history asks for with the
// same of one with a small one, in an installation of its own: nothing may depend
// on what there was. Of questions of a kind the row is that of the one that loses
// most.
func measureHistory(ctx context.Context, m *machine) ([]row, error) {
	tasks := m.size(1_000_000, 100_000)
	large, err := m.installPast(ctx, "large", tasks)
	if err != nil {
		return nil, err
	}
	small, err := m.installPast(ctx, "small", tasks/historySmaller)
	if err != nil {
		return nil, err
	}
	check, err := compare(ctx, 1, breathe, once(func(ctx context.Context) error {
		for range historySmaller {
			if err := small.checkLedger(ctx); err != nil {
				return err
			}
		}
		return nil
	}), once(large.checkLedger))
	if err != nil {
		return nil, err
	}
	rows := []row{rateRow(fmt.Sprintf("ledger check of %d tasks", tasks), fmt.Sprintf("%d checks of %d", historySmaller, small.tasks), check, historyAim)}
	for _, k := range kinds() {
		slowest, err := k.slowest(ctx, small, large)
		if err != nil {
			return nil, err
		}
		rows = append(rows, slowest)
	}
	return rows, nil
}

// kind is what an account asks for, in some ways.
type kind struct {
	what      string
	questions []question
}

type question struct {
	what string
	ask  func(context.Context, *past) error
}

// slowest is the row of the question that loses most.
func (k kind) slowest(ctx context.Context, small, large *past) (slowest row, err error) {
	lowest := -1.0
	for _, q := range k.questions {
		of := func(p *past) slice {
			return repeat(4, 300*time.Millisecond, func(ctx context.Context) error { return q.ask(ctx, p) })
		}
		c, err := compare(ctx, large.m.size(4, 2), breathe, of(small), of(large))
		if err != nil {
			return row{}, fmt.Errorf("%s: %w", q.what, err)
		}
		if median := quantile(c.ratios(), 0.5); lowest < 0 || median < lowest {
			lowest = median
			slowest = rateRow(k.what+": "+q.what, fmt.Sprintf("of %d tasks", small.tasks), c, historyAim)
		}
	}
	return slowest, nil
}

func kinds() []kind {
	recent := url.QueryEscape(time.Now().UTC().Add(-5 * time.Minute).Format(time.RFC3339))
	return []kind{
		{"slowest of 2 reads", []question{
			clientAsks("a task", "/v1/tasks/{middle}"),
			clientAsks("the balance", "/v1/user/balance"),
		}},
		{"slowest of 12 lists", []question{
			clientAsks("all", "/v1/tasks"),
			clientAsks("after one in the middle", "/v1/tasks?after={middle}"),
			clientAsks("by status, all match", "/v1/tasks?status=completed"),
			clientAsks("by status, few match", "/v1/tasks?status=processing"),
			clientAsks("by status, none match", "/v1/tasks?status=failed"),
			clientAsks("by model, few match", "/v1/tasks?model=theta-image-turbo"),
			clientAsks("by type, none match", "/v1/tasks?type=music"),
			clientAsks("by model and status, none match", "/v1/tasks?model=alpha-v3&status=failed"),
			clientAsks("by reference, one matches", "/v1/tasks?reference=order-7"),
			clientAsks("by created_after, none match", "/v1/tasks?created_after="+recent),
			clientAsks("by created_before, few match", "/v1/tasks?created_before={early}"),
			clientAsks("by status and created_after, none match", "/v1/tasks?status=completed&created_after="+recent),
		}},
		{"slowest of 3 pages of the ledger", []question{
			operatorAsks("the first", "/admin/v1/accounts/{account}/ledger"),
			operatorAsks("in the middle", "/admin/v1/accounts/{account}/ledger?after={entry}"),
			operatorAsks("of a task", "/admin/v1/accounts/{account}/ledger?task={middle}"),
		}},
		{"slowest of 3 transactions", []question{
			{"a submit's", func(ctx context.Context, p *past) error {
				_, err := p.stage.pending(ctx)
				return err
			}},
			{"all of a task", func(ctx context.Context, p *past) error {
				_, err := p.stage.completed(ctx)
				return err
			}},
			{"a claim of 10 due jobs", func(ctx context.Context, p *past) error { // with a lease that is over at once
				_, err := p.Store.ClaimDue(ctx, channelKling, p.epoch, "bench", 0, historyOpen)
				return err
			}},
		}},
	}
}

// clientAsks is a question of a client, who reads a path; past.names are put into it.
func clientAsks(what, path string) question {
	return question{what, func(ctx context.Context, p *past) error {
		_, err := p.get(ctx, p.names.Replace(path))
		return err
	}}
}

// operatorAsks is clientAsks for an operator.
func operatorAsks(what, path string) question {
	return question{what, func(ctx context.Context, p *past) error {
		asking := *p.gateway
		asking.secret = p.Config.AdminKey
		_, err := asking.get(ctx, p.names.Replace(path))
		return err
	}}
}

// past is an installation as an account with a history sees it.
type past struct {
	*gateway
	stage *stage
	tasks int
	names *strings.Replacer // of the account, a task in the middle, its entry in the ledger, an early time
	epoch int64             // of the channel
}

// installPast makes an installation with a history of that many tasks.
func (m *machine) installPast(ctx context.Context, name string, tasks int) (*past, error) {
	g, err := m.install(ctx, name, m.channels(time.Second))
	if err != nil {
		return nil, err
	}
	p := &past{gateway: g, tasks: tasks}
	if p.stage, err = newStage(g); err != nil {
		return nil, err
	}
	values := strings.NewReplacer("$1", "'"+g.key.AccountID+"'", "$2", "'"+g.key.ID+"'", "$3", strconv.Itoa(tasks), "$4", strconv.Itoa(historyOpen))
	for i, statement := range pastStatements {
		if _, err := g.tables.ExecContext(ctx, values.Replace(statement)); err != nil {
			return nil, fmt.Errorf("fill the past, step %d: %w", i+1, err)
		}
	}
	if p.epoch, err = p.Store.BeginEpoch(ctx, channelKling); err != nil {
		return nil, err
	}
	var middle, entry string
	var third time.Time
	if err := p.tables.QueryRowContext(ctx, `SELECT t.id, l.id, (SELECT created_at FROM tasks WHERE reference = 'order-3')
			FROM tasks t JOIN ledger_transfers l ON l.task_id = t.id AND l.kind = 'hold' WHERE t.reference = $1`,
		fmt.Sprintf("order-%d", tasks/2)).Scan(&middle, &entry, &third); err != nil {
		return nil, fmt.Errorf("find a task in the middle: %w", err)
	}
	early := url.QueryEscape(third.UTC().Format(time.RFC3339Nano))
	p.names = strings.NewReplacer("{account}", g.key.AccountID, "{middle}", middle, "{entry}", entry, "{early}", early)
	return p, nil
}

// checkLedger checks all that the installation has.
func (p *past) checkLedger(ctx context.Context) error {
	report, err := p.Store.CheckLedger(ctx)
	if err == nil && !report.OK {
		err = errors.New("the ledger does not add up: " + report.Problems[0])
	}
	return err
}

// pastStatements make what a busy account leaves behind in 180 days. Tasks have ids of
// the API's form, of which lists go by the time. The first three are of a model and a
// type of their own, none has failed, the open ones are the newest. Each that has ended
// has five entries in the ledger. Each that is open has a job that is due. $1 is the
// account, $2 its key, $3 the number of tasks, $4 how many of them are open.
var pastStatements = []string{
	`INSERT INTO tasks (id, account_id, key_id, model, type, status, progress, params, reference, plan, charges, hold, cost,
		created_at, started_at, ended_at, deadline_at, channel, provider)
	SELECT 'task_' || (SELECT string_agg(substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', ((floor(extract(epoch FROM t) * 1000)::bigint >> 5 * place) & 31)::int + 1, 1), ''
			ORDER BY place DESC) FROM generate_series(0, 9) AS place) || lpad(i::text, 16, '0'),
		$1, $2, CASE WHEN i <= 3 THEN 'theta-image-turbo' ELSE 'alpha-v3' END, CASE WHEN i <= 3 THEN 'image' ELSE 'video' END,
		CASE WHEN i > $3 - $4 THEN 'processing' ELSE 'completed' END, CASE WHEN i > $3 - $4 THEN 50 ELSE 100 END,
		'{"prompt":"' || repeat('a kite ', 40) || '"}', 'order-' || i, '{}', '[]', 2000, CASE WHEN i > $3 - $4 THEN 0 ELSE 1000 END,
		t, t, CASE WHEN i > $3 - $4 THEN NULL ELSE t + interval '2 minutes' END, t + interval '200 days', 'kling', 'kling'
	FROM (SELECT i, now() - ($3 - i) * interval '1 second' * (180 * 86400.0 / $3) - interval '5 minutes' AS t FROM generate_series(1, $3) AS i) AS n`,
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
	`UPDATE keys SET in_flight = $4, held = $4 * 2000, spent = ($3 - $4) * 1000 WHERE id = $2`,
	`UPDATE accounts SET available = available - $4 * 2000 - ($3 - $4) * 1000, in_flight = $4, held = $4 * 2000,
		spent = ($3 - $4) * 1000 WHERE id = $1`,
	`INSERT INTO attempts (task_id, n, channel, provider, route, state, created_at, accepted_at)
		SELECT id, 1, 'kling', 'kling', '{}', 'accepted', created_at, created_at FROM tasks WHERE status = 'processing'`,
	`INSERT INTO awaits (task_id, n, channel, ref, accepted_at, next_poll_at)
		SELECT id, 1, 'kling', '{}', created_at, created_at FROM tasks WHERE status = 'processing'`,
	`VACUUM ANALYZE`,
}
