-- +goose Up
-- Times are microseconds since 1970 in UTC, truth values 0 and 1.

-- Money. The cached balances are checked by the table itself, so that no path
-- of code can overdraw an account or a limited key.
CREATE TABLE accounts (
    id         text    PRIMARY KEY,
    name       text    NOT NULL,
    group_name text    NOT NULL DEFAULT '',
    available  integer NOT NULL DEFAULT 0,
    held       integer NOT NULL DEFAULT 0,
    spent      integer NOT NULL DEFAULT 0,
    created_at integer NOT NULL,
    CONSTRAINT accounts_not_short CHECK (available >= 0),
    CONSTRAINT accounts_held CHECK (held >= 0),
    CONSTRAINT accounts_spent CHECK (spent >= 0)
) STRICT;

CREATE TABLE keys (
    id           text    PRIMARY KEY,
    account_id   text    NOT NULL REFERENCES accounts (id),
    hash         blob    NOT NULL,
    name         text    NOT NULL,
    prefix       text    NOT NULL,
    last_four    text    NOT NULL,
    group_name   text    NOT NULL DEFAULT '',
    unlimited    integer NOT NULL,
    quota        integer NOT NULL DEFAULT 0,
    held         integer NOT NULL DEFAULT 0,
    spent        integer NOT NULL DEFAULT 0,
    models       text    NOT NULL DEFAULT '[]',
    allow_ips    text    NOT NULL DEFAULT '[]',
    expires_at   integer,
    deleted_at   integer,
    created_at   integer NOT NULL,
    last_used_at integer,
    CONSTRAINT keys_within_quota CHECK (unlimited OR held + spent <= quota),
    CONSTRAINT keys_held CHECK (held >= 0),
    CONSTRAINT keys_spent CHECK (spent >= 0)
) STRICT;
CREATE UNIQUE INDEX keys_hash ON keys (hash);
CREATE INDEX keys_account ON keys (account_id, id);

CREATE TABLE ledger_transfers (
    id         text    PRIMARY KEY,
    kind       text    NOT NULL CHECK (kind IN ('grant', 'hold', 'post', 'void')),
    account_id text    NOT NULL,
    key_id     text,
    task_id    text,
    amount     integer NOT NULL,
    reference  text,
    at         integer NOT NULL,
    CHECK (kind = 'grant' OR (key_id IS NOT NULL AND task_id IS NOT NULL AND amount >= 0))
) STRICT;
CREATE UNIQUE INDEX ledger_one_hold ON ledger_transfers (task_id) WHERE kind = 'hold';
CREATE UNIQUE INDEX ledger_one_end ON ledger_transfers (task_id) WHERE kind IN ('post', 'void');
CREATE UNIQUE INDEX ledger_reference ON ledger_transfers (account_id, reference) WHERE kind = 'grant';
CREATE INDEX ledger_account ON ledger_transfers (account_id, id);

CREATE TABLE ledger_entries (
    transfer_id text    NOT NULL REFERENCES ledger_transfers (id),
    bucket      text    NOT NULL CHECK (bucket IN ('issued', 'available', 'held', 'spent')),
    account_id  text    NOT NULL,
    key_id      text,
    amount      integer NOT NULL,
    PRIMARY KEY (transfer_id, bucket)
) STRICT;

CREATE TABLE webhook_secrets (
    id         text    PRIMARY KEY,
    account_id text    NOT NULL REFERENCES accounts (id),
    sealed     blob    NOT NULL,
    created_at integer NOT NULL,
    expires_at integer
) STRICT;
CREATE UNIQUE INDEX webhook_secrets_current ON webhook_secrets (account_id) WHERE expires_at IS NULL;
CREATE INDEX webhook_secrets_account ON webhook_secrets (account_id);

-- Tasks.
CREATE TABLE tasks (
    id                  text    PRIMARY KEY,
    account_id          text    NOT NULL,
    key_id              text    NOT NULL,
    model               text    NOT NULL,
    type                text    NOT NULL,
    status              text    NOT NULL CHECK (status IN ('pending', 'processing', 'completed', 'failed', 'cancelled')),
    progress            integer NOT NULL DEFAULT 0 CHECK (progress BETWEEN 0 AND 100),
    version             integer NOT NULL DEFAULT 1,
    params              text    NOT NULL,
    reference           text    NOT NULL DEFAULT '',
    request_id          text    NOT NULL DEFAULT '',
    plan                text    NOT NULL,
    charges             text    NOT NULL,
    hold                integer NOT NULL CHECK (hold >= 0),
    cost                integer NOT NULL DEFAULT 0,
    created_at          integer NOT NULL,
    started_at          integer,
    ended_at            integer,
    deadline_at         integer NOT NULL,
    cancel_requested_at integer,
    parked_at           integer,
    park_reason         text    NOT NULL DEFAULT '',
    channel             text    NOT NULL DEFAULT '',
    provider            text    NOT NULL DEFAULT '',
    run_seen_at         integer,
    checked_at          integer NOT NULL,
    results             text,
    failure             text,
    webhook_url         text    NOT NULL DEFAULT '',
    webhook_state       text    NOT NULL DEFAULT '',
    webhook_reason      text    NOT NULL DEFAULT '',
    webhook_round       integer NOT NULL DEFAULT 0,
    webhook_body        blob,
    webhook_body_at     integer,
    webhook_checked_at  integer,
    CONSTRAINT tasks_full_progress CHECK ((progress = 100) = (status = 'completed')),
    CONSTRAINT tasks_end_time CHECK ((ended_at IS NOT NULL) = (status IN ('completed', 'failed', 'cancelled'))),
    CONSTRAINT tasks_cost CHECK (cost BETWEEN 0 AND hold AND (cost = 0 OR status = 'completed')),
    CONSTRAINT tasks_failure CHECK ((failure IS NOT NULL) = (status = 'failed'))
) STRICT;
CREATE INDEX tasks_account ON tasks (account_id, id);
CREATE INDEX tasks_reference ON tasks (account_id, reference, id) WHERE reference <> '';
CREATE INDEX tasks_open ON tasks (deadline_at) WHERE status IN ('pending', 'processing');
CREATE INDEX tasks_unseen ON tasks (created_at) WHERE status IN ('pending', 'processing') AND run_seen_at IS NULL;
CREATE INDEX tasks_cancels ON tasks (cancel_requested_at) WHERE status IN ('pending', 'processing') AND cancel_requested_at IS NOT NULL;
CREATE INDEX tasks_parked ON tasks (channel, parked_at) WHERE status IN ('pending', 'processing') AND parked_at IS NOT NULL;
CREATE INDEX tasks_webhooks ON tasks (webhook_checked_at) WHERE webhook_state = 'pending' AND webhook_round > 0;

-- A record without an end belongs to a task that is still open.
CREATE TABLE idempotency (
    account_id  text    NOT NULL,
    key         text    NOT NULL,
    path        text    NOT NULL,
    body_sha256 blob    NOT NULL,
    task_id     text    NOT NULL,
    created_at  integer NOT NULL,
    expires_at  integer,
    PRIMARY KEY (account_id, key)
) STRICT;
CREATE INDEX idempotency_task ON idempotency (task_id);

-- The durable path.
CREATE TABLE attempts (
    task_id     text    NOT NULL REFERENCES tasks (id),
    n           integer NOT NULL CHECK (n > 0),
    channel     text    NOT NULL,
    provider    text    NOT NULL,
    fingerprint text    NOT NULL DEFAULT '',
    route       text    NOT NULL,
    external_id text    NOT NULL DEFAULT '',
    send_before integer,
    ref         text,
    state       text    NOT NULL CHECK (state IN ('granted', 'intent', 'accepted', 'rejected', 'unknown', 'abandoned', 'ended')),
    outcome     text,
    failure     text,
    results     text,
    trouble     text    NOT NULL DEFAULT '',
    error       text    NOT NULL DEFAULT '',
    absent_at   integer,
    created_at  integer NOT NULL,
    accepted_at integer,
    ended_at    integer,
    PRIMARY KEY (task_id, n)
) STRICT;

CREATE TABLE awaits (
    task_id       text    NOT NULL,
    n             integer NOT NULL,
    channel       text    NOT NULL,
    fingerprint   text    NOT NULL DEFAULT '',
    ref           text    NOT NULL,
    expected_us   integer NOT NULL DEFAULT 0,
    progress      integer NOT NULL DEFAULT 0,
    accepted_at   integer NOT NULL,
    next_poll_at  integer NOT NULL,
    hinted_at     integer,
    claim         text    NOT NULL DEFAULT '',
    claim_epoch   integer NOT NULL DEFAULT 0,
    claimed_at    integer,
    claimed_until integer,
    missing       integer NOT NULL DEFAULT 0,
    owed          integer NOT NULL DEFAULT 0,
    PRIMARY KEY (task_id, n),
    FOREIGN KEY (task_id, n) REFERENCES attempts (task_id, n)
) STRICT;
CREATE INDEX awaits_due ON awaits (channel, next_poll_at);

CREATE TABLE channels (
    name         text    PRIMARY KEY,
    epoch        integer NOT NULL DEFAULT 0,
    enabled      integer NOT NULL DEFAULT 1,
    last_seen_at integer
) STRICT;

CREATE TABLE actions (
    id       text    PRIMARY KEY,
    task_id  text    NOT NULL REFERENCES tasks (id),
    action   text    NOT NULL,
    channel  text    NOT NULL DEFAULT '',
    by_whom  text    NOT NULL DEFAULT '',
    reason   text    NOT NULL DEFAULT '',
    state    text    NOT NULL CHECK (state IN ('pending', 'taken')),
    at       integer NOT NULL,
    taken_at integer
) STRICT;
CREATE INDEX actions_task ON actions (task_id);
CREATE INDEX actions_pending ON actions (at) WHERE state = 'pending';

CREATE TABLE deliveries (
    task_id         text    NOT NULL REFERENCES tasks (id),
    round           integer NOT NULL,
    attempt         integer NOT NULL,
    at              integer NOT NULL,
    status          integer NOT NULL DEFAULT 0,
    error           text    NOT NULL DEFAULT '',
    duration_us     integer NOT NULL DEFAULT 0,
    next_attempt_at integer,
    PRIMARY KEY (task_id, round, attempt)
) STRICT;

-- +goose Down
DROP TABLE deliveries;
DROP TABLE actions;
DROP TABLE channels;
DROP TABLE awaits;
DROP TABLE attempts;
DROP TABLE idempotency;
DROP TABLE tasks;
DROP TABLE webhook_secrets;
DROP TABLE ledger_entries;
DROP TABLE ledger_transfers;
DROP TABLE keys;
DROP TABLE accounts;
