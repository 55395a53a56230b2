-- +goose Up
-- Since when a task waits for a slot: a vendor account may take only so many
-- jobs at once.
ALTER TABLE tasks ADD COLUMN queued_at timestamptz;
CREATE INDEX tasks_queued ON tasks (queued_at) WHERE status IN ('pending', 'processing') AND queued_at IS NOT NULL;

-- Which jobs an account has, or may have: those whose attempt has not ended.
-- slot_until is set where nobody can tell: they count until then.
ALTER TABLE attempts ADD COLUMN slot_until timestamptz;
CREATE INDEX attempts_slots ON attempts (channel) WHERE ended_at IS NULL;

-- The channels that may take a task that waits for a slot. One of them grants
-- it: the slot is the task's until it is used, or taken back.
CREATE TABLE queue (
    task_id    text        NOT NULL REFERENCES tasks (id),
    channel    text        NOT NULL,
    n          integer     NOT NULL CHECK (n > 0),
    account_id text        NOT NULL,
    since      timestamptz NOT NULL,
    granted_at timestamptz,
    signal_at  timestamptz,
    PRIMARY KEY (task_id, channel)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500, autovacuum_analyze_scale_factor = 0.05);
CREATE INDEX queue_waiting ON queue (channel, account_id, since, task_id) WHERE granted_at IS NULL;
CREATE INDEX queue_granted ON queue (channel, signal_at) WHERE granted_at IS NOT NULL;

-- Whose turn it is: accounts by when a channel served them last, as a count of
-- what it served. Accounts that wait have a row.
CREATE TABLE turns (
    channel    text        NOT NULL,
    account_id text        NOT NULL,
    served     bigint      NOT NULL DEFAULT 0,
    since      timestamptz NOT NULL,
    PRIMARY KEY (channel, account_id)
) WITH (fillfactor = 50);
CREATE INDEX turns_next ON turns (channel, served, since, account_id);

-- +goose Down
DROP TABLE turns, queue;
DROP INDEX attempts_slots;
ALTER TABLE attempts DROP COLUMN slot_until;
DROP INDEX tasks_queued;
ALTER TABLE tasks DROP COLUMN queued_at;
