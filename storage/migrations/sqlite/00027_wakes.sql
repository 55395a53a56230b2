-- +goose Up
-- The time by which a task's run must have asked for its next step, or a round of its
-- callback must have recorded an attempt. One process wakes what is past its time,
-- accounts in turns.
CREATE TABLE wakes (
    task_id    text    NOT NULL,
    kind       text    NOT NULL CHECK (kind IN ('run', 'round')),
    account_id text    NOT NULL,
    wake_at    integer NOT NULL,
    tries      integer NOT NULL DEFAULT 0,
    asked      integer NOT NULL DEFAULT 0,
    PRIMARY KEY (task_id, kind)
) STRICT;
CREATE INDEX wakes_due ON wakes (account_id, wake_at);
INSERT INTO wakes (task_id, kind, account_id, wake_at)
    SELECT id, 'run', account_id, unixepoch() * 1000000 FROM tasks WHERE status IN ('pending', 'processing')
    UNION ALL SELECT id, 'round', account_id, unixepoch() * 1000000 FROM tasks WHERE webhook_state = 'pending' AND webhook_round > 0;

-- What told who has to be signalled.
DELETE FROM awaits WHERE owed;
ALTER TABLE awaits DROP COLUMN owed;
ALTER TABLE awaits DROP COLUMN unheard;
DROP INDEX queue_granted;
ALTER TABLE queue DROP COLUMN signal_at;
CREATE INDEX queue_granted ON queue (channel, granted_at) WHERE granted_at IS NOT NULL;
DROP INDEX tasks_unseen;
DROP INDEX tasks_parked;
DROP INDEX tasks_parked_since;
CREATE INDEX tasks_parked ON tasks (channel, retry_at) WHERE status IN ('pending', 'processing') AND parked_at IS NOT NULL;
CREATE INDEX tasks_parked_retry ON tasks (retry_at) WHERE status IN ('pending', 'processing') AND parked_at IS NOT NULL;
DROP INDEX tasks_cancels;
DROP INDEX tasks_open;
DROP INDEX tasks_queued;
DROP INDEX tasks_webhooks;
ALTER TABLE tasks DROP COLUMN run_seen_at;
ALTER TABLE tasks DROP COLUMN checked_at;
ALTER TABLE tasks DROP COLUMN rescues;
ALTER TABLE tasks DROP COLUMN rescue_at;
ALTER TABLE tasks DROP COLUMN webhook_checked_at;
DROP INDEX actions_pending;
ALTER TABLE actions DROP COLUMN state;
ALTER TABLE actions DROP COLUMN taken_at;
ALTER TABLE actions DROP COLUMN taken_by;

-- Attempts whose jobs may run on, by when their slots are free.
UPDATE attempts SET state = 'abandoned' WHERE state = 'ended' AND ended_at IS NULL AND slot_until IS NOT NULL;
CREATE INDEX attempts_abandoned ON attempts (slot_until) WHERE state = 'abandoned';

-- +goose Down
DROP INDEX attempts_abandoned;
UPDATE attempts SET state = 'ended' WHERE state = 'abandoned';
ALTER TABLE actions ADD COLUMN state text NOT NULL DEFAULT 'taken' CHECK (state IN ('pending', 'taken'));
ALTER TABLE actions ADD COLUMN taken_at integer;
ALTER TABLE actions ADD COLUMN taken_by text NOT NULL DEFAULT '';
CREATE INDEX actions_pending ON actions (at) WHERE state = 'pending';
ALTER TABLE tasks ADD COLUMN run_seen_at integer;
ALTER TABLE tasks ADD COLUMN checked_at integer NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN rescues integer NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN rescue_at integer;
ALTER TABLE tasks ADD COLUMN webhook_checked_at integer;
DROP INDEX tasks_parked_retry;
DROP INDEX tasks_parked;
CREATE INDEX tasks_parked ON tasks (channel, parked_at) WHERE status IN ('pending', 'processing') AND parked_at IS NOT NULL;
CREATE INDEX tasks_parked_since ON tasks (parked_at) WHERE status IN ('pending', 'processing') AND parked_at IS NOT NULL;
CREATE INDEX tasks_unseen ON tasks (account_id, created_at, id) WHERE status IN ('pending', 'processing') AND run_seen_at IS NULL;
CREATE INDEX tasks_cancels ON tasks (account_id, cancel_requested_at, id) WHERE status IN ('pending', 'processing') AND cancel_requested_at IS NOT NULL;
CREATE INDEX tasks_open ON tasks (deadline_at, id) WHERE status IN ('pending', 'processing');
CREATE INDEX tasks_queued ON tasks (queued_at) WHERE status IN ('pending', 'processing') AND queued_at IS NOT NULL;
CREATE INDEX tasks_webhooks ON tasks (webhook_checked_at) WHERE webhook_state = 'pending' AND webhook_round > 0;
DROP INDEX queue_granted;
ALTER TABLE queue ADD COLUMN signal_at integer;
CREATE INDEX queue_granted ON queue (channel, signal_at) WHERE granted_at IS NOT NULL;
ALTER TABLE awaits ADD COLUMN unheard integer NOT NULL DEFAULT 0;
ALTER TABLE awaits ADD COLUMN owed integer NOT NULL DEFAULT 0;
DROP TABLE wakes;
