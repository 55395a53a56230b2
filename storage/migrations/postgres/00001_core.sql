-- +goose Up

-- Money. The cached balances are checked by the table itself, so that no path
-- of code can overdraw an account or a limited key.
CREATE TABLE accounts (
    id         text        PRIMARY KEY,
    name       text        NOT NULL,
    group_name text        NOT NULL DEFAULT '',
    available  bigint      NOT NULL DEFAULT 0,
    held       bigint      NOT NULL DEFAULT 0,
    spent      bigint      NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    CONSTRAINT accounts_not_short CHECK (available >= 0),
    CONSTRAINT accounts_held CHECK (held >= 0),
    CONSTRAINT accounts_spent CHECK (spent >= 0)
) WITH (fillfactor = 70);

CREATE TABLE keys (
    id           text        PRIMARY KEY,
    account_id   text        NOT NULL REFERENCES accounts (id),
    hash         bytea       NOT NULL,
    name         text        NOT NULL,
    prefix       text        NOT NULL,
    last_four    text        NOT NULL,
    group_name   text        NOT NULL DEFAULT '',
    unlimited    boolean     NOT NULL,
    quota        bigint      NOT NULL DEFAULT 0,
    held         bigint      NOT NULL DEFAULT 0,
    spent        bigint      NOT NULL DEFAULT 0,
    models       text        NOT NULL DEFAULT '[]',
    allow_ips    text        NOT NULL DEFAULT '[]',
    expires_at   timestamptz,
    deleted_at   timestamptz,
    created_at   timestamptz NOT NULL,
    last_used_at timestamptz,
    CONSTRAINT keys_within_quota CHECK (unlimited OR held + spent <= quota),
    CONSTRAINT keys_held CHECK (held >= 0),
    CONSTRAINT keys_spent CHECK (spent >= 0)
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX keys_hash ON keys (hash);
CREATE INDEX keys_account ON keys (account_id, id);

CREATE TABLE ledger_transfers (
    id         text        PRIMARY KEY,
    kind       text        NOT NULL CHECK (kind IN ('grant', 'hold', 'post', 'void')),
    account_id text        NOT NULL,
    key_id     text,
    task_id    text,
    amount     bigint      NOT NULL,
    reference  text,
    at         timestamptz NOT NULL,
    CHECK (kind = 'grant' OR (key_id IS NOT NULL AND task_id IS NOT NULL AND amount >= 0))
);
CREATE UNIQUE INDEX ledger_one_hold ON ledger_transfers (task_id) WHERE kind = 'hold';
CREATE UNIQUE INDEX ledger_one_end ON ledger_transfers (task_id) WHERE kind IN ('post', 'void');
CREATE UNIQUE INDEX ledger_reference ON ledger_transfers (account_id, reference) WHERE kind = 'grant';
CREATE INDEX ledger_account ON ledger_transfers (account_id, id);

CREATE TABLE ledger_entries (
    transfer_id text   NOT NULL REFERENCES ledger_transfers (id),
    bucket      text   NOT NULL CHECK (bucket IN ('issued', 'available', 'held', 'spent')),
    account_id  text   NOT NULL,
    key_id      text,
    amount      bigint NOT NULL,
    PRIMARY KEY (transfer_id, bucket)
);

CREATE TABLE webhook_secrets (
    id         text        PRIMARY KEY,
    account_id text        NOT NULL REFERENCES accounts (id),
    sealed     bytea       NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz
);
CREATE UNIQUE INDEX webhook_secrets_current ON webhook_secrets (account_id) WHERE expires_at IS NULL;
CREATE INDEX webhook_secrets_account ON webhook_secrets (account_id);

-- Tasks.
CREATE TABLE tasks (
    id                  text        PRIMARY KEY,
    account_id          text        NOT NULL,
    key_id              text        NOT NULL,
    model               text        NOT NULL,
    type                text        NOT NULL,
    status              text        NOT NULL CHECK (status IN ('pending', 'processing', 'completed', 'failed', 'cancelled')),
    progress            integer     NOT NULL DEFAULT 0 CHECK (progress BETWEEN 0 AND 100),
    version             bigint      NOT NULL DEFAULT 1,
    params              text        NOT NULL,
    reference           text        NOT NULL DEFAULT '',
    request_id          text        NOT NULL DEFAULT '',
    plan                text        NOT NULL,
    charges             text        NOT NULL,
    hold                bigint      NOT NULL CHECK (hold >= 0),
    cost                bigint      NOT NULL DEFAULT 0,
    created_at          timestamptz NOT NULL,
    started_at          timestamptz,
    ended_at            timestamptz,
    deadline_at         timestamptz NOT NULL,
    cancel_requested_at timestamptz,
    parked_at           timestamptz,
    park_reason         text        NOT NULL DEFAULT '',
    channel             text        NOT NULL DEFAULT '',
    provider            text        NOT NULL DEFAULT '',
    run_seen_at         timestamptz,
    checked_at          timestamptz NOT NULL,
    results             text,
    failure             text,
    webhook_url         text        NOT NULL DEFAULT '',
    webhook_state       text        NOT NULL DEFAULT '',
    webhook_reason      text        NOT NULL DEFAULT '',
    webhook_round       integer     NOT NULL DEFAULT 0,
    webhook_body        bytea,
    webhook_body_at     timestamptz,
    webhook_checked_at  timestamptz,
    CONSTRAINT tasks_full_progress CHECK ((progress = 100) = (status = 'completed')),
    CONSTRAINT tasks_end_time CHECK ((ended_at IS NOT NULL) = (status IN ('completed', 'failed', 'cancelled'))),
    CONSTRAINT tasks_cost CHECK (cost BETWEEN 0 AND hold AND (cost = 0 OR status = 'completed')),
    CONSTRAINT tasks_failure CHECK ((failure IS NOT NULL) = (status = 'failed'))
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX tasks_account ON tasks (account_id, id);
CREATE INDEX tasks_reference ON tasks (account_id, reference, id) WHERE reference <> '';
CREATE INDEX tasks_open ON tasks (deadline_at) WHERE status IN ('pending', 'processing');
CREATE INDEX tasks_unseen ON tasks (created_at) WHERE status IN ('pending', 'processing') AND run_seen_at IS NULL;
CREATE INDEX tasks_cancels ON tasks (cancel_requested_at) WHERE status IN ('pending', 'processing') AND cancel_requested_at IS NOT NULL;
CREATE INDEX tasks_parked ON tasks (channel, parked_at) WHERE status IN ('pending', 'processing') AND parked_at IS NOT NULL;
CREATE INDEX tasks_webhooks ON tasks (webhook_checked_at) WHERE webhook_state = 'pending' AND webhook_round > 0;

-- A record without an end belongs to a task that is still open.
CREATE TABLE idempotency (
    account_id  text        NOT NULL,
    key         text        NOT NULL,
    path        text        NOT NULL,
    body_sha256 bytea       NOT NULL,
    task_id     text        NOT NULL,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz,
    PRIMARY KEY (account_id, key)
);
CREATE INDEX idempotency_task ON idempotency (task_id);

-- The durable path.
CREATE TABLE attempts (
    task_id     text        NOT NULL REFERENCES tasks (id),
    n           integer     NOT NULL CHECK (n > 0),
    channel     text        NOT NULL,
    provider    text        NOT NULL,
    fingerprint text        NOT NULL DEFAULT '',
    route       text        NOT NULL,
    external_id text        NOT NULL DEFAULT '',
    send_before timestamptz,
    ref         text,
    state       text        NOT NULL CHECK (state IN ('granted', 'intent', 'accepted', 'rejected', 'unknown', 'abandoned', 'ended')),
    outcome     text,
    failure     text,
    results     text,
    trouble     text        NOT NULL DEFAULT '',
    error       text        NOT NULL DEFAULT '',
    absent_at   timestamptz,
    created_at  timestamptz NOT NULL,
    accepted_at timestamptz,
    ended_at    timestamptz,
    PRIMARY KEY (task_id, n)
) WITH (fillfactor = 70);

-- Every poll moves next_poll_at, which is indexed, so no update of this table
-- is heap-only: it is kept small by vacuuming it far more often than others.
CREATE TABLE awaits (
    task_id       text        NOT NULL,
    n             integer     NOT NULL,
    channel       text        NOT NULL,
    fingerprint   text        NOT NULL DEFAULT '',
    ref           text        NOT NULL,
    expected_us   bigint      NOT NULL DEFAULT 0,
    progress      integer     NOT NULL DEFAULT 0,
    accepted_at   timestamptz NOT NULL,
    next_poll_at  timestamptz NOT NULL,
    hinted_at     timestamptz,
    claim         text        NOT NULL DEFAULT '',
    claim_epoch   bigint      NOT NULL DEFAULT 0,
    claimed_at    timestamptz,
    claimed_until timestamptz,
    missing       integer     NOT NULL DEFAULT 0,
    owed          boolean     NOT NULL DEFAULT false,
    PRIMARY KEY (task_id, n),
    FOREIGN KEY (task_id, n) REFERENCES attempts (task_id, n)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.05);
CREATE INDEX awaits_due ON awaits (channel, next_poll_at);

CREATE TABLE channels (
    name         text   PRIMARY KEY,
    epoch        bigint NOT NULL DEFAULT 0,
    enabled      boolean NOT NULL DEFAULT true,
    last_seen_at timestamptz
) WITH (fillfactor = 50);

CREATE TABLE actions (
    id       text        PRIMARY KEY,
    task_id  text        NOT NULL REFERENCES tasks (id),
    action   text        NOT NULL,
    channel  text        NOT NULL DEFAULT '',
    by_whom  text        NOT NULL DEFAULT '',
    reason   text        NOT NULL DEFAULT '',
    state    text        NOT NULL CHECK (state IN ('pending', 'taken')),
    at       timestamptz NOT NULL,
    taken_at timestamptz
);
CREATE INDEX actions_task ON actions (task_id);
CREATE INDEX actions_pending ON actions (at) WHERE state = 'pending';

CREATE TABLE deliveries (
    task_id         text        NOT NULL REFERENCES tasks (id),
    round           integer     NOT NULL,
    attempt         integer     NOT NULL,
    at              timestamptz NOT NULL,
    status          integer     NOT NULL DEFAULT 0,
    error           text        NOT NULL DEFAULT '',
    duration_us     bigint      NOT NULL DEFAULT 0,
    next_attempt_at timestamptz,
    PRIMARY KEY (task_id, round, attempt)
);

-- +goose Down
DROP TABLE deliveries, actions, channels, awaits, attempts, idempotency, tasks, webhook_secrets, ledger_entries, ledger_transfers, keys, accounts;
