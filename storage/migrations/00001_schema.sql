-- +goose Up
-- This file is a template: migrate.go replaces each word in double braces by the SQL of
-- PostgreSQL or SQLite. The statements for one database alone are at the end of the file.

-- Accounts, with their balances. The checks of the table keep any code from overdrawing an
-- account, or below a limited key.
--
-- The limits of an account are columns, too: rate (submits a minute), in_flight_cap (open tasks),
-- unpaid_cap (what jobs of cancelled tasks may cost) and uploads_cap (bytes a day). NULL stands
-- for the limit in the settings.
CREATE TABLE accounts (
    id            text        PRIMARY KEY,
    name          text        NOT NULL,
    group_name    text        NOT NULL DEFAULT '',
    available     {{.bigint}} NOT NULL DEFAULT 0,
    held          {{.bigint}} NOT NULL DEFAULT 0,
    spent         {{.bigint}} NOT NULL DEFAULT 0,
    in_flight     integer     NOT NULL DEFAULT 0,
    rate          integer     CHECK (rate >= 0),
    in_flight_cap integer     CHECK (in_flight_cap >= 0),
    unpaid_cap    {{.bigint}},
    uploads_cap   {{.bigint}},
    erase_inputs  {{.bool}}   NOT NULL DEFAULT {{.false}},
    webhook       text        NOT NULL DEFAULT '',
    created_at    {{.time}}   NOT NULL,
    CONSTRAINT accounts_not_short CHECK (available >= 0),
    CONSTRAINT accounts_held CHECK (held >= 0),
    CONSTRAINT accounts_spent CHECK (spent >= 0)
) {{.strict}};

-- API keys. A key may have a cap a day, a week and a month. Its row holds the start of the
-- current period of each (day_start) and the amount used in it (day_used), because each hold
-- updates the row anyway. The keys of a rotation share quota and caps. The first key's row holds
-- them, and quota_id of each later key names that row.
CREATE TABLE keys (
    id            text        PRIMARY KEY,
    account_id    text        NOT NULL REFERENCES accounts (id),
    hash          {{.bytes}}  NOT NULL,
    name          text        NOT NULL,
    prefix        text        NOT NULL,
    last_four     text        NOT NULL,
    group_name    text        NOT NULL DEFAULT '',
    scopes        text        NOT NULL DEFAULT '["generate","read","manage"]',
    models        text        NOT NULL DEFAULT '[]',
    allow_ips     text        NOT NULL DEFAULT '[]',
    strict        {{.bool}}   NOT NULL DEFAULT {{.false}},
    unlimited     {{.bool}}   NOT NULL,
    quota         {{.bigint}} NOT NULL DEFAULT 0,
    held          {{.bigint}} NOT NULL DEFAULT 0,
    spent         {{.bigint}} NOT NULL DEFAULT 0,
    in_flight     integer     NOT NULL DEFAULT 0,
    rate          integer     CHECK (rate >= 0),
    in_flight_cap integer     CHECK (in_flight_cap >= 0),
    cap_day       {{.bigint}} CHECK (cap_day >= 0),
    cap_week      {{.bigint}} CHECK (cap_week >= 0),
    cap_month     {{.bigint}} CHECK (cap_month >= 0),
    day_start     {{.time}},
    day_used      {{.bigint}} NOT NULL DEFAULT 0,
    week_start    {{.time}},
    week_used     {{.bigint}} NOT NULL DEFAULT 0,
    month_start   {{.time}},
    month_used    {{.bigint}} NOT NULL DEFAULT 0,
    quota_id      text        REFERENCES keys (id),
    successor_id  text        REFERENCES keys (id),
    created_at    {{.time}}   NOT NULL,
    expires_at    {{.time}},
    deleted_at    {{.time}},
    last_used_at  {{.time}},
    CONSTRAINT keys_within_quota CHECK (unlimited OR held + spent <= quota),
    CONSTRAINT keys_held CHECK (held >= 0),
    CONSTRAINT keys_spent CHECK (spent >= 0)
) {{.strict}};
CREATE UNIQUE INDEX keys_hash ON keys (hash);
CREATE INDEX keys_account ON keys (account_id, id);
CREATE INDEX keys_quota ON keys (quota_id) WHERE quota_id IS NOT NULL;

-- Transfers of the ledger. A transfer repeats the task's model, provider and status, since it
-- outlives the task. counted_day is the UTC day whose cap a hold counts against; week and month
-- follow from it. For a post or a void it is the day from which the unused rest was subtracted.
CREATE TABLE ledger_transfers (
    id          text        PRIMARY KEY,
    kind        text        NOT NULL CHECK (kind IN ('grant', 'hold', 'post', 'void')),
    account_id  text        NOT NULL,
    key_id      text,
    task_id     text,
    amount      {{.bigint}} NOT NULL,
    reference   text,
    model       text,
    provider    text,
    status      text,
    counted_day {{.time}},
    at          {{.time}}   NOT NULL,
    CHECK (kind = 'grant' OR (key_id IS NOT NULL AND task_id IS NOT NULL AND amount >= 0))
) {{.strict}};
CREATE UNIQUE INDEX ledger_one_hold ON ledger_transfers (task_id) WHERE kind = 'hold';
CREATE UNIQUE INDEX ledger_one_end ON ledger_transfers (task_id) WHERE kind IN ('post', 'void');
CREATE UNIQUE INDEX ledger_reference ON ledger_transfers (account_id, reference) WHERE kind = 'grant';
CREATE INDEX ledger_account_time ON ledger_transfers (account_id, at, id);

CREATE TABLE ledger_entries (
    transfer_id text        NOT NULL REFERENCES ledger_transfers (id),
    bucket      text        NOT NULL CHECK (bucket IN ('issued', 'available', 'held', 'spent')),
    account_id  text        NOT NULL,
    key_id      text,
    amount      {{.bigint}} NOT NULL,
    PRIMARY KEY (transfer_id, bucket)
) {{.strict}};

-- Usage by hour and by day (UTC). An end counts in the hour in which it was stored: cost,
-- released and the numbers of tasks. taken is the sum of the holds, in the hour of each hold.
CREATE TABLE usage_sums (
    account_id text        NOT NULL,
    span       text        NOT NULL CHECK (span IN ('hour', 'day')),
    begins_at  {{.time}}   NOT NULL,
    key_id     text        NOT NULL,
    model      text        NOT NULL,
    provider   text        NOT NULL,
    cost       {{.bigint}} NOT NULL DEFAULT 0,
    released   {{.bigint}} NOT NULL DEFAULT 0,
    taken      {{.bigint}} NOT NULL DEFAULT 0,
    completed  {{.bigint}} NOT NULL DEFAULT 0,
    failed     {{.bigint}} NOT NULL DEFAULT 0,
    cancelled  {{.bigint}} NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, span, begins_at, key_id, model, provider)
) {{.strict}};
CREATE INDEX usage_sums_time ON usage_sums (span, begins_at);

-- Sums of the charges that vendors reported, by the hour of the report.
CREATE TABLE vendor_sums (
    account_id text        NOT NULL,
    begins_at  {{.time}}   NOT NULL,
    key_id     text        NOT NULL,
    model      text        NOT NULL,
    provider   text        NOT NULL,
    unit       text        NOT NULL,
    amount     {{.bigint}} NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, begins_at, key_id, model, provider, unit)
) {{.strict}};
CREATE INDEX vendor_sums_time ON vendor_sums (begins_at);

-- Speeches. A speech is answered at once and has no task, so its hold belongs to a row here. The
-- row is a lease: housekeeping voids the hold of a speech that is still open at void_after.
CREATE TABLE speeches (
    id         text        PRIMARY KEY,
    account_id text        NOT NULL,
    key_id     text        NOT NULL,
    request_id text        NOT NULL,
    model      text        NOT NULL,
    charges    text        NOT NULL,
    hold       {{.bigint}} NOT NULL CHECK (hold >= 0),
    cost       {{.bigint}} NOT NULL DEFAULT 0,
    state      text        NOT NULL CHECK (state IN ('open', 'posted', 'voided')),
    created_at {{.time}}   NOT NULL,
    ended_at   {{.time}},
    void_after {{.time}}   NOT NULL,
    CONSTRAINT speeches_end_time CHECK ((ended_at IS NOT NULL) = (state IN ('posted', 'voided'))),
    CONSTRAINT speeches_cost CHECK (cost BETWEEN 0 AND hold AND (cost = 0 OR state = 'posted'))
) {{.strict}};
CREATE INDEX speeches_account ON speeches (account_id, id);
CREATE INDEX speeches_open ON speeches (void_after) WHERE state = 'open';

CREATE TABLE webhook_secrets (
    id         text        PRIMARY KEY,
    account_id text        NOT NULL REFERENCES accounts (id),
    sealed     {{.bytes}}  NOT NULL,
    created_at {{.time}}   NOT NULL,
    expires_at {{.time}}
) {{.strict}};
CREATE UNIQUE INDEX webhook_secrets_current ON webhook_secrets (account_id) WHERE expires_at IS NULL;
CREATE INDEX webhook_secrets_account ON webhook_secrets (account_id);

-- Sessions of browsers in the console. A person signs in with a key, or as operator with an
-- admin key. A row with once is a sign-in link, which its first use turns into a session.
CREATE TABLE sessions (
    token_hash {{.bytes}}  PRIMARY KEY NOT NULL,
    key_id     text        REFERENCES keys (id),
    admin_hash {{.bytes}},
    once       {{.bool}}   NOT NULL,
    created_at {{.time}}   NOT NULL,
    expires_at {{.time}}   NOT NULL,
    CONSTRAINT sessions_one_holder CHECK ((key_id IS NULL) = (admin_hash IS NOT NULL))
) {{.strict}};
CREATE INDEX sessions_key ON sessions (key_id) WHERE key_id IS NOT NULL;
CREATE INDEX sessions_expiry ON sessions (expires_at);

-- Rate limits of keys and accounts. tat is the theoretical arrival time of the generic cell rate
-- algorithm, in microseconds since 1970: the time at which the limiter is idle again. A missing
-- row means an idle limiter, so a crash may lose the table.
CREATE TABLE rates (
    id  text        PRIMARY KEY,
    tat {{.bigint}} NOT NULL
) {{.strict}};

-- Audit log: who changed what and when, through the admin API or with a key. Its rows outlive
-- the objects that they name, so the table has no foreign keys.
CREATE TABLE audit (
    id         text        NOT NULL PRIMARY KEY,
    at         {{.time}}   NOT NULL,
    acted_by   text        NOT NULL,
    action     text        NOT NULL,
    object     text        NOT NULL,
    account_id text,
    old_values text,
    new_values text,
    address    text        NOT NULL,
    request_id text        NOT NULL
) {{.strict}};
CREATE INDEX audit_account ON audit (account_id, id);

-- Tasks: the state from which package task computes the next step, the fields that a client
-- sees, and the callback. The row of an erased task stays for the ledger. It has lost all texts of
-- the client and the vendor.
CREATE TABLE tasks (
    id                  text        PRIMARY KEY,
    account_id          text        NOT NULL,
    key_id              text        NOT NULL,
    group_name          text        NOT NULL DEFAULT '',
    model               text        NOT NULL,
    type                text        NOT NULL,
    status              text        NOT NULL CHECK (status IN ('pending', 'processing', 'completed', 'failed', 'cancelled')),
    progress            integer     NOT NULL DEFAULT 0 CHECK (progress BETWEEN 0 AND 100),
    version             {{.bigint}} NOT NULL DEFAULT 1,
    params              text        NOT NULL,
    reference           text        NOT NULL DEFAULT '',
    trace_parent        text        NOT NULL DEFAULT '',  -- the span of the submit; later runs join its trace
    source_id           text        NOT NULL DEFAULT '',  -- the task whose result it works on
    document            text        NOT NULL,                 -- the remaining fields of task.State, as JSON
    hold                {{.bigint}} NOT NULL CHECK (hold >= 0),
    cost                {{.bigint}} NOT NULL DEFAULT 0,
    created_at          {{.time}}   NOT NULL,
    started_at          {{.time}},
    ended_at            {{.time}},
    deadline_at         {{.time}}   NOT NULL,
    wait                text        NOT NULL DEFAULT '' CHECK (wait IN ('', 'source', 'pause', 'parked', 'slot', 'modal', 'unknown', 'vendor')),
    wait_reason         text        NOT NULL DEFAULT '',  -- why the task is stuck
    wait_since          {{.time}},
    try_at              {{.time}},                        -- no step begins before this time
    wait_ends_at        {{.time}},                        -- the task fails then, if it still waits
    fails_at            {{.time}},                        -- the task fails then, if nothing happens before
    cancel_requested_at {{.time}},
    fail_requested_at   {{.time}},
    channel             text        NOT NULL DEFAULT '',
    provider            text        NOT NULL DEFAULT '',
    results             text,
    sweep_at            {{.time}},                        -- when to remove copied files of a task that did not complete
    webhook_url         text        NOT NULL DEFAULT '',
    webhook_state       text        NOT NULL DEFAULT '',
    webhook_reason      text        NOT NULL DEFAULT '',
    webhook_round       integer     NOT NULL DEFAULT 0,
    webhook_body        {{.bytes}},
    webhook_body_at     {{.time}},
    erased_at           {{.time}},
    inputs_erased_at    {{.time}},
    restored_at         {{.time}},                        -- the time to which the database was restored while the task was open
    tail_lost           {{.bool}}   NOT NULL DEFAULT {{.false}},
    CONSTRAINT tasks_full_progress CHECK ((progress = 100) = (status = 'completed')),
    CONSTRAINT tasks_end_time CHECK ((ended_at IS NOT NULL) = (status IN ('completed', 'failed', 'cancelled'))),
    CONSTRAINT tasks_cost CHECK (cost BETWEEN 0 AND hold AND (cost = 0 OR status = 'completed')),
    CONSTRAINT tasks_wait CHECK ((wait = '') = (wait_since IS NULL) AND (wait IN ('', 'pause', 'source')) = (wait_ends_at IS NULL)),
    CONSTRAINT tasks_stuck_wait CHECK (wait_reason = '' OR wait IN ('parked', 'slot', 'unknown'))
) {{.strict}};
-- Indexes for the lists of clients. Each is in bytewise order of the ids, and leaves out erased
-- tasks.
CREATE INDEX tasks_account ON tasks (account_id, id) WHERE erased_at IS NULL;
CREATE INDEX tasks_of_account ON tasks (account_id, type, model, channel, status, id {{.bytewise}}) WHERE erased_at IS NULL;
CREATE INDEX tasks_callbacks_of_account ON tasks (account_id, webhook_state, id {{.bytewise}}) WHERE webhook_state <> '' AND erased_at IS NULL;
CREATE INDEX tasks_references ON tasks (reference, account_id, id) WHERE reference <> '';
CREATE INDEX tasks_account_open ON tasks (account_id, created_at) WHERE status IN ('pending', 'processing');
CREATE INDEX tasks_group ON tasks (group_name) WHERE status IN ('pending', 'processing');
CREATE INDEX tasks_source ON tasks (source_id) WHERE source_id <> '';
-- Indexes for the lists of operators, over all accounts.
CREATE INDEX tasks_of_all ON tasks (type, model, channel, status, id {{.bytewise}}) WHERE erased_at IS NULL;
CREATE INDEX tasks_stuck ON tasks (id {{.bytewise}}) WHERE status IN ('pending', 'processing') AND wait_reason <> '';
CREATE INDEX tasks_callbacks ON tasks (webhook_state, id {{.bytewise}}) WHERE webhook_state <> '' AND erased_at IS NULL;
-- Indexes for the scans of due tasks.
CREATE INDEX tasks_parked ON tasks (channel, try_at) WHERE status IN ('pending', 'processing') AND wait_reason <> '';
CREATE INDEX tasks_parked_retry ON tasks (try_at) WHERE status IN ('pending', 'processing') AND wait_reason <> '';
CREATE INDEX tasks_sweeps ON tasks (sweep_at) WHERE sweep_at IS NOT NULL;

-- Source tasks: task_id uses files of source_id as inputs. The document of task_id says which
-- files.
CREATE TABLE sources (
    source_id text NOT NULL REFERENCES tasks (id),
    task_id   text NOT NULL REFERENCES tasks (id),
    PRIMARY KEY (source_id, task_id)
) {{.strict}};
CREATE INDEX sources_task ON sources (task_id);

-- Idempotency records. expires_at is NULL while the task is open. A record with opens_at belongs
-- to a request without a key of the client's, which waits for the task's result. Its body_sha256
-- is the hash of API key, path and body. From opens_at on, an equal request adopts the task.
CREATE TABLE idempotency (
    account_id  text        NOT NULL,
    key         text        NOT NULL,
    path        text        NOT NULL,
    body_sha256 {{.bytes}}  NOT NULL,
    task_id     text        NOT NULL,
    created_at  {{.time}}   NOT NULL,
    expires_at  {{.time}},
    opens_at    {{.time}},
    PRIMARY KEY (account_id, key)
) {{.strict}};
CREATE INDEX idempotency_task ON idempotency (task_id);
CREATE INDEX idempotency_waiters ON idempotency (body_sha256) WHERE opens_at IS NOT NULL;

-- Assets: clips and voices that the vendor names by an id, and the task that made each.
CREATE TABLE assets (
    account_id text    NOT NULL,
    kind       text    NOT NULL CHECK (kind IN ('clip', 'voice')),
    vendor_id  text    NOT NULL,
    task_id    text    NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    position   integer NOT NULL CHECK (position >= 0),
    PRIMARY KEY (account_id, kind, vendor_id)
) {{.strict}};
CREATE INDEX assets_task ON assets (task_id);

-- Wakes. wake_at is the time by which the task's run must ask for its next step again, or a
-- callback round must record an attempt. The wake scan of one process starts or signals the runs
-- and rounds that are past their time, account by account in turn.
CREATE TABLE wakes (
    task_id    text        NOT NULL,
    kind       text        NOT NULL CHECK (kind IN ('run', 'round')),
    account_id text        NOT NULL,
    wake_at    {{.time}}   NOT NULL,
    tries      integer     NOT NULL DEFAULT 0,
    asked      {{.bool}}   NOT NULL DEFAULT {{.false}},
    PRIMARY KEY (task_id, kind)
) {{.strict}};
-- wakes_new holds the runs that have not asked yet: not started, or started without an answer.
-- wakes_due holds all other wakes, and the runs whose start was tried.
CREATE INDEX wakes_new ON wakes (tries, account_id, wake_at) WHERE NOT asked;
CREATE INDEX wakes_due ON wakes (account_id, wake_at) WHERE asked OR tries > 0;
CREATE INDEX wakes_stuck ON wakes (task_id {{.bytewise}}) WHERE kind = 'run' AND tries >= 3;

-- Attempts: submissions of a task to a channel. An attempt occupies a slot of its channel until
-- it ends, or until slot_until if its end cannot be seen. An abandoned attempt also counts against
-- its account's unpaid_cap.
CREATE TABLE attempts (
    task_id             text        NOT NULL REFERENCES tasks (id),
    n                   integer     NOT NULL CHECK (n > 0),
    account_id          text        NOT NULL,
    state               text        NOT NULL CHECK (state IN ('intent', 'accepted', 'rejected', 'unknown', 'abandoned', 'ended')),
    channel             text        NOT NULL,
    provider            text        NOT NULL,
    fingerprint         text        NOT NULL,
    job_id              text        NOT NULL, -- the vendor's id of the job; empty until it is known
    created_at          {{.time}}   NOT NULL,
    accepted_at         {{.time}},
    given_up_at         {{.time}},
    ended_at            {{.time}},
    slot_until          {{.time}},
    succeeded           {{.bool}}   NOT NULL,
    document            text        NOT NULL, -- the remaining fields of task.Attempt, as JSON
    vendor_amount       {{.bigint}} CHECK (vendor_amount >= 0), -- the vendor's charge, in millionths of vendor_unit
    vendor_unit         text        NOT NULL DEFAULT '',
    vendor_uncounted_at {{.time}},                              -- since when the charge waits to be added to vendor_sums
    PRIMARY KEY (task_id, n)
) {{.strict}};
CREATE INDEX attempts_slots ON attempts (channel) WHERE ended_at IS NULL;
CREATE INDEX attempts_abandoned ON attempts (slot_until) WHERE state = 'abandoned';
CREATE INDEX attempts_abandoned_account ON attempts (account_id) WHERE state = 'abandoned';
CREATE INDEX attempts_vendor_uncounted ON attempts (vendor_uncounted_at) WHERE vendor_uncounted_at IS NOT NULL;

-- Awaits: the jobs that are polled.
CREATE TABLE awaits (
    task_id       text        NOT NULL,
    n             integer     NOT NULL,
    channel       text        NOT NULL,
    fingerprint   text        NOT NULL DEFAULT '',
    ref           text        NOT NULL,
    expected_us   {{.bigint}} NOT NULL DEFAULT 0,
    progress      integer     NOT NULL DEFAULT 0,
    accepted_at   {{.time}}   NOT NULL,
    next_poll_at  {{.time}}   NOT NULL,
    hinted_at     {{.time}},
    claim         text        NOT NULL DEFAULT '',
    claim_epoch   {{.bigint}} NOT NULL DEFAULT 0,
    claimed_at    {{.time}},
    claimed_until {{.time}},
    missing       integer     NOT NULL DEFAULT 0,
    PRIMARY KEY (task_id, n),
    FOREIGN KEY (task_id, n) REFERENCES attempts (task_id, n)
) {{.strict}};
CREATE INDEX awaits_due ON awaits (channel, next_poll_at);

-- Channels, each with its circuit breaker. An open breaker lets one job through from probe_at on.
-- The attempt that sends this job holds the probe until probe_until.
CREATE TABLE channels (
    name          text        PRIMARY KEY,
    epoch         {{.bigint}} NOT NULL DEFAULT 0,
    enabled       {{.bool}}   NOT NULL DEFAULT {{.true}},
    last_seen_at  {{.time}},
    breaker       text        NOT NULL DEFAULT 'closed' CHECK (breaker IN ('closed', 'open')),
    changed_at    {{.time}},
    break_reason  text        NOT NULL DEFAULT '',
    trips         integer     NOT NULL DEFAULT 0,
    probe_at      {{.time}},
    probe         text        NOT NULL DEFAULT '',
    probe_until   {{.time}},
    last_error    text        NOT NULL DEFAULT '',
    last_error_at {{.time}}
) {{.strict}};

-- Submits and failed submits of each channel by minute, over all processes.
CREATE TABLE channel_minutes (
    channel  text        NOT NULL,
    minute   {{.time}}   NOT NULL,
    submits  {{.bigint}} NOT NULL DEFAULT 0,
    failures {{.bigint}} NOT NULL DEFAULT 0,
    PRIMARY KEY (channel, minute)
) {{.strict}};

-- The queue of tasks that wait for a slot: a row for each channel that may take the task. One
-- channel grants a slot. The task owns the slot until it uses it or the grant expires.
CREATE TABLE queue (
    task_id    text        NOT NULL REFERENCES tasks (id),
    channel    text        NOT NULL,
    n          integer     NOT NULL CHECK (n > 0),
    account_id text        NOT NULL,
    since      {{.time}}   NOT NULL,
    granted_at {{.time}},
    PRIMARY KEY (task_id, channel)
) {{.strict}};
CREATE INDEX queue_waiting ON queue (channel, account_id, since, task_id) WHERE granted_at IS NULL;
CREATE INDEX queue_granted ON queue (channel, granted_at) WHERE granted_at IS NOT NULL;

-- Round robin among the accounts that wait at a channel: the channel serves the account with the
-- smallest served next. An account has a row while it waits.
CREATE TABLE turns (
    channel    text        NOT NULL,
    account_id text        NOT NULL,
    served     {{.bigint}} NOT NULL DEFAULT 0,
    since      {{.time}}   NOT NULL,
    PRIMARY KEY (channel, account_id)
) {{.strict}};
CREATE INDEX turns_next ON turns (channel, served, since, account_id);

-- Commands of operators.
CREATE TABLE actions (
    id      text        PRIMARY KEY,
    task_id text        NOT NULL REFERENCES tasks (id),
    action  text        NOT NULL,
    channel text        NOT NULL DEFAULT '',
    by_whom text        NOT NULL DEFAULT '',
    reason  text        NOT NULL DEFAULT '',
    at      {{.time}}   NOT NULL
) {{.strict}};
CREATE INDEX actions_task ON actions (task_id);

-- Attempts at callbacks.
CREATE TABLE deliveries (
    task_id         text        NOT NULL REFERENCES tasks (id),
    round           integer     NOT NULL,
    attempt         integer     NOT NULL,
    at              {{.time}}   NOT NULL,
    status          integer     NOT NULL DEFAULT 0,
    error           text        NOT NULL DEFAULT '',
    duration_us     {{.bigint}} NOT NULL DEFAULT 0,
    next_attempt_at {{.time}},
    PRIMARY KEY (task_id, round, attempt)
) {{.strict}};

-- Progress of retention for each kind of rows and files. mark is the id or the bucket key up to
-- which nothing is left to remove. removed counts all removals. ended_at is the end of the last
-- complete pass.
CREATE TABLE retention (
    kind     text        PRIMARY KEY,
    mark     text        NOT NULL DEFAULT '',
    removed  {{.bigint}} NOT NULL DEFAULT 0,
    ended_at {{.time}}
) {{.strict}};

-- Restores of the database: the time of the backup, and the time at which the restore was noted.
-- Rows that were open in the backup may lack later changes.
CREATE TABLE restores (
    restored_to {{.time}}   NOT NULL PRIMARY KEY,
    noted_at    {{.time}}   NOT NULL
) {{.strict}};

-- The last statements differ between the databases. ledger_time serves sums over all accounts.
{{if .postgres}}
-- Rows come nearly in order of time.
CREATE INDEX ledger_time ON ledger_transfers USING brin (at) WITH (pages_per_range = 16, autosummarize = on);

-- Changes of this table need no write-ahead log.
ALTER TABLE rates SET UNLOGGED;

-- Free space in each page for updates of its rows.
ALTER TABLE accounts SET (fillfactor = 70);
ALTER TABLE keys SET (fillfactor = 70);
ALTER TABLE usage_sums SET (fillfactor = 50);
ALTER TABLE vendor_sums SET (fillfactor = 50);
ALTER TABLE speeches SET (fillfactor = 80);
ALTER TABLE rates SET (fillfactor = 50);
ALTER TABLE attempts SET (fillfactor = 70);
ALTER TABLE channels SET (fillfactor = 50);
ALTER TABLE channel_minutes SET (fillfactor = 50);
ALTER TABLE turns SET (fillfactor = 50);

-- Tables that PostgreSQL vacuums more often, to keep them small. Every poll, for example, moves
-- awaits.next_poll_at, which is indexed, so no update of that table is heap-only.
ALTER TABLE tasks SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE wakes SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.05);
ALTER TABLE awaits SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.05);
ALTER TABLE queue SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500, autovacuum_analyze_scale_factor = 0.05);
{{else}}
CREATE INDEX ledger_time ON ledger_transfers (at);
{{end}}

-- +goose Down
DROP TABLE restores;
DROP TABLE retention;
DROP TABLE deliveries;
DROP TABLE actions;
DROP TABLE turns;
DROP TABLE queue;
DROP TABLE channel_minutes;
DROP TABLE channels;
DROP TABLE awaits;
DROP TABLE attempts;
DROP TABLE wakes;
DROP TABLE assets;
DROP TABLE idempotency;
DROP TABLE sources;
DROP TABLE tasks;
DROP TABLE audit;
DROP TABLE rates;
DROP TABLE sessions;
DROP TABLE webhook_secrets;
DROP TABLE speeches;
DROP TABLE vendor_sums;
DROP TABLE usage_sums;
DROP TABLE ledger_entries;
DROP TABLE ledger_transfers;
DROP TABLE keys;
DROP TABLE accounts;
