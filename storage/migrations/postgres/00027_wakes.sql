-- +goose Up
-- The time by which a task's run must have asked for its next step, or a round of its
-- callback must have recorded an attempt. One process wakes what is past its time,
-- accounts in turns.
CREATE TABLE wakes (
    task_id    text        NOT NULL,
    kind       text        NOT NULL CHECK (kind IN ('run', 'round')),
    account_id text        NOT NULL,
    wake_at    timestamptz NOT NULL,
    tries      integer     NOT NULL DEFAULT 0,
    asked      boolean     NOT NULL DEFAULT false,
    PRIMARY KEY (task_id, kind)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.05);
CREATE INDEX wakes_due ON wakes (account_id, wake_at);
INSERT INTO wakes (task_id, kind, account_id, wake_at)
    SELECT id, 'run', account_id, now() FROM tasks WHERE status IN ('pending', 'processing')
    UNION ALL SELECT id, 'round', account_id, now() FROM tasks WHERE webhook_state = 'pending' AND webhook_round > 0;

-- What told who has to be signalled.
DELETE FROM awaits WHERE owed;
ALTER TABLE awaits DROP COLUMN owed;
ALTER TABLE awaits DROP COLUMN unheard;
DROP INDEX queue_granted;
ALTER TABLE queue DROP COLUMN signal_at;
CREATE INDEX queue_granted ON queue (channel, granted_at) WHERE granted_at IS NOT NULL;
DROP INDEX tasks_unseen, tasks_cancels, tasks_open, tasks_queued, tasks_webhooks, tasks_parked, tasks_parked_since;
CREATE INDEX tasks_parked ON tasks (channel, retry_at) WHERE status IN ('pending', 'processing') AND parked_at IS NOT NULL;
CREATE INDEX tasks_parked_retry ON tasks (retry_at) WHERE status IN ('pending', 'processing') AND parked_at IS NOT NULL;
ALTER TABLE tasks DROP COLUMN run_seen_at, DROP COLUMN checked_at, DROP COLUMN rescues, DROP COLUMN rescue_at, DROP COLUMN webhook_checked_at;
DROP INDEX actions_pending;
ALTER TABLE actions DROP COLUMN state, DROP COLUMN taken_at, DROP COLUMN taken_by;

-- Attempts whose jobs may run on, by when their slots are free.
UPDATE attempts SET state = 'abandoned' WHERE state = 'ended' AND ended_at IS NULL AND slot_until IS NOT NULL;
CREATE INDEX attempts_abandoned ON attempts (slot_until) WHERE state = 'abandoned';

-- +goose Down
DROP INDEX attempts_abandoned;
UPDATE attempts SET state = 'ended' WHERE state = 'abandoned';
ALTER TABLE actions ADD COLUMN state text NOT NULL DEFAULT 'taken' CHECK (state IN ('pending', 'taken')),
    ADD COLUMN taken_at timestamptz, ADD COLUMN taken_by text NOT NULL DEFAULT '';
CREATE INDEX actions_pending ON actions (at) WHERE state = 'pending';
ALTER TABLE tasks ADD COLUMN run_seen_at timestamptz, ADD COLUMN checked_at timestamptz NOT NULL DEFAULT now(), ADD COLUMN rescues integer NOT NULL DEFAULT 0,
    ADD COLUMN rescue_at timestamptz, ADD COLUMN webhook_checked_at timestamptz;
ALTER TABLE tasks ALTER COLUMN checked_at DROP DEFAULT;
DROP INDEX tasks_parked_retry, tasks_parked;
CREATE INDEX tasks_parked ON tasks (channel, parked_at) WHERE status IN ('pending', 'processing') AND parked_at IS NOT NULL;
CREATE INDEX tasks_parked_since ON tasks (parked_at) WHERE status IN ('pending', 'processing') AND parked_at IS NOT NULL;
CREATE INDEX tasks_unseen ON tasks (account_id, created_at, id) WHERE status IN ('pending', 'processing') AND run_seen_at IS NULL;
CREATE INDEX tasks_cancels ON tasks (account_id, cancel_requested_at, id) WHERE status IN ('pending', 'processing') AND cancel_requested_at IS NOT NULL;
CREATE INDEX tasks_open ON tasks (deadline_at, id) WHERE status IN ('pending', 'processing');
CREATE INDEX tasks_queued ON tasks (queued_at) WHERE status IN ('pending', 'processing') AND queued_at IS NOT NULL;
CREATE INDEX tasks_webhooks ON tasks (webhook_checked_at) WHERE webhook_state = 'pending' AND webhook_round > 0;
DROP INDEX queue_granted;
ALTER TABLE queue ADD COLUMN signal_at timestamptz;
CREATE INDEX queue_granted ON queue (channel, signal_at) WHERE granted_at IS NOT NULL;
ALTER TABLE awaits ADD COLUMN unheard boolean NOT NULL DEFAULT false;
ALTER TABLE awaits ADD COLUMN owed boolean NOT NULL DEFAULT false;
DROP TABLE wakes;
