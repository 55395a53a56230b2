package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"
)

// How many tasks the account has, and those of the other one, whose database is as
// good as empty: enough that answers have as many rows.
const (
	historyTasks      = 1_000_000
	quickHistoryTasks = 100_000
	shortHistory      = 100
	historyOpen       = 10
	historyClients    = 4
	historyAim        = 1 / 1.5
)

// historyStatement makes tasks as pastTasksStatement does, under ids of the API's
// form, of which lists go by the time. The first three are of a model and a type of
// their own, none has failed, the open ones are the newest.
const historyStatement = `INSERT INTO tasks (id, account_id, key_id, model, type, status, progress, params, reference, plan, charges, hold, cost,
		created_at, started_at, ended_at, deadline_at, channel, provider)
	SELECT 'task_' || (SELECT string_agg(substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', ((floor(extract(epoch FROM t) * 1000)::bigint >> 5 * place) & 31)::int + 1, 1), ''
			ORDER BY place DESC) FROM generate_series(0, 9) AS place) || lpad(i::text, 16, '0'),
		$1, $2, CASE WHEN i <= 3 THEN 'theta-image-turbo' ELSE 'alpha-v3' END, CASE WHEN i <= 3 THEN 'image' ELSE 'video' END,
		CASE WHEN i > $3 - $4 THEN 'processing' ELSE 'completed' END, CASE WHEN i > $3 - $4 THEN 50 ELSE 100 END,
		'{"prompt":"' || repeat('a kite ', 40) || '"}', 'order-' || i, '{}', '[]', 2000, CASE WHEN i > $3 - $4 THEN 0 ELSE 1000 END,
		t, t, CASE WHEN i > $3 - $4 THEN NULL ELSE t + interval '2 minutes' END, t + interval '200 days', 'kling', 'kling'
	FROM (SELECT i, now() - ($3 - i) * interval '1 second' * ($5 * 86400.0 / $3) - interval '5 minutes' AS t FROM generate_series(1, $3::bigint) AS i) AS n`

// historyAwaits are the jobs of the open tasks, all of which are due.
var historyAwaits = []string{
	`INSERT INTO attempts (task_id, n, channel, provider, route, state, created_at, accepted_at)
		SELECT id, 1, 'kling', 'kling', '{}', 'accepted', created_at, created_at FROM tasks WHERE status = 'processing'`,
	`INSERT INTO awaits (task_id, n, channel, ref, accepted_at, next_poll_at)
		SELECT id, 1, 'kling', '{}', created_at, created_at FROM tasks WHERE status = 'processing'`,
}

// past is an installation with a history.
type past struct {
	*gateway
	stage  *stage
	tasks  int64
	read   string // a task in the middle
	oldest string // the time of the third task
	entry  string // the ledger's, of the task in the middle
	epoch  int64  // of the channel
}

// installPast makes an installation with a history of that many tasks.
func (m *machine) installPast(ctx context.Context, name string, tasks int64) (p *past, err error) {
	p = &past{tasks: tasks}
	if p.gateway, err = m.install(ctx, name, m.channels(time.Second, 1000)); err != nil {
		return p, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if p.stage, err = newStage(p.gateway); err != nil {
		return p, err
	}
	if err := p.fillPastOf(ctx, historyStatement, tasks, historyOpen); err != nil {
		return p, err
	}
	for _, statement := range historyAwaits {
		if _, err := p.tables.ExecContext(ctx, statement); err != nil {
			return p, fmt.Errorf("fill the history's jobs: %w", err)
		}
	}
	if p.epoch, err = p.Store.BeginEpoch(ctx, channelKling); err != nil {
		return p, err
	}
	var third time.Time
	if err := p.tables.QueryRowContext(ctx, `SELECT t.id, l.id, (SELECT created_at FROM tasks WHERE reference = 'order-3' AND account_id = $1)
			FROM tasks t JOIN ledger_transfers l ON l.task_id = t.id AND l.kind = 'hold' WHERE t.reference = $2 AND t.account_id = $1`,
		p.key.AccountID, fmt.Sprintf("order-%d", tasks/2)).Scan(&p.read, &p.entry, &third); err != nil {
		return p, fmt.Errorf("find a task in the middle: %w", err)
	}
	p.oldest = url.QueryEscape(third.UTC().Format(time.RFC3339Nano))
	return p, nil
}

// claim takes all due rows, with a lease that is over at once.
func (p *past) claim(ctx context.Context) error {
	_, err := p.Store.ClaimDue(ctx, channelKling, p.epoch, "bench", 0, historyOpen)
	return err
}

// measureHistory compares what an account with a large history asks for with the
// same of one with next to none, in an installation of its own: nothing may depend
// on what there was.
func measureHistory(ctx context.Context, m *machine, o options) (_ []row, err error) {
	tasks, rounds, length := int64(historyTasks), 4, 300*time.Millisecond
	if o.quick {
		tasks, rounds = quickHistoryTasks, 2
	}
	full, err := m.installPast(ctx, "history", tasks)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, full.close()) }()
	empty, err := m.installPast(ctx, "fresh", shortHistory)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, empty.close()) }()
	list := func(query string) func(context.Context, *past) error {
		return func(ctx context.Context, p *past) error { return p.ask(ctx, "/v1/tasks?"+query, false) }
	}
	ledger := func(query func(p *past) string) func(context.Context, *past) error {
		return func(ctx context.Context, p *past) error {
			return p.ask(ctx, "/admin/v1/accounts/"+p.key.AccountID+"/ledger"+query(p), true)
		}
	}
	recent := url.QueryEscape(time.Now().UTC().Add(-5 * time.Minute).Format(time.RFC3339))
	var rows []row
	for _, part := range []struct {
		what string
		do   func(context.Context, *past) error
	}{
		{"read of a task", func(ctx context.Context, p *past) error { return p.ask(ctx, "/v1/tasks/"+p.read, false) }},
		{"list of all", list("")},
		{"list after one in the middle", func(ctx context.Context, p *past) error { return p.ask(ctx, "/v1/tasks?after="+p.read, false) }},
		{"list by status, all match", list("status=completed")},
		{"list by status, few match", list("status=processing")},
		{"list by status, none match", list("status=failed")},
		{"list by model, all match", list("model=alpha-v3")},
		{"list by model, few match", list("model=theta-image-turbo")},
		{"list by model, none match", list("model=zeta-3.1-flash-image-preview")},
		{"list by type, all match", list("type=video")},
		{"list by type, few match", list("type=image")},
		{"list by type, none match", list("type=music")},
		{"list by model and status, none match", list("model=alpha-v3&status=failed")},
		{"list by model and type, none match", list("model=alpha-v3&type=image")},
		{"list by reference, one matches", list("reference=order-7")},
		{"list by reference, none match", list("reference=none")},
		{"list by created_after, none match", list("created_after=" + recent)},
		{"list by created_before, few match", func(ctx context.Context, p *past) error {
			return p.ask(ctx, "/v1/tasks?created_before="+p.oldest, false)
		}},
		{"list by status and created_after, none match", list("status=completed&created_after=" + recent)},
		{"balance", func(ctx context.Context, p *past) error { return p.ask(ctx, "/v1/user/balance", false) }},
		{"ledger, first page", ledger(func(*past) string { return "" })},
		{"ledger, page in the middle", ledger(func(p *past) string { return "?after=" + p.entry })},
		{"ledger of a task", ledger(func(p *past) string { return "?task=" + p.read })},
		{"claim of 10 due rows", func(ctx context.Context, p *past) error { return p.claim(ctx) }},
		{"transaction of a submit", func(ctx context.Context, p *past) error {
			_, err := p.stage.pending(ctx)
			return err
		}},
		{"all transactions of a task", func(ctx context.Context, p *past) error {
			_, err := p.stage.completed(ctx)
			return err
		}},
	} {
		ask := func(p *past) slice {
			return func(ctx context.Context) (float64, error) {
				return repeat(ctx, historyClients, length, func(ctx context.Context) error { return part.do(ctx, p) })
			}
		}
		for _, warm := range []slice{ask(empty), ask(full)} {
			if _, err := warm(ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", part.what, err)
			}
		}
		c, err := compare(ctx, rounds, o, part.what, ask(empty), ask(full))
		if err != nil {
			return nil, err
		}
		rows = append(rows, ratioRow(part.what, fmt.Sprintf("%d of %d tasks", shortHistory, tasks), c, historyAim))
	}
	return rows, nil
}
