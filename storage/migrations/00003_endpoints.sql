-- +goose Up
-- Addresses of accounts that receive events. below_balance is whether the account had less
-- than balance_low available when that was last looked at; turn_at is when deliveries were last
-- claimed.
CREATE TABLE endpoints (
    id              text        PRIMARY KEY,
    account_id      text        NOT NULL REFERENCES accounts (id),
    url             text        NOT NULL,
    events          text        NOT NULL,
    enabled         {{.bool}}   NOT NULL,
    description     text        NOT NULL DEFAULT '',
    balance_low     {{.bigint}} CHECK (balance_low > 0),
    below_balance   {{.bool}}   NOT NULL DEFAULT {{.false}},
    failing_since   {{.time}},
    disabled_at     {{.time}},
    disabled_reason text        NOT NULL DEFAULT '',
    turn_at         {{.time}}   NOT NULL,
    created_at      {{.time}}   NOT NULL,
    CONSTRAINT endpoints_disabled CHECK (enabled = (disabled_at IS NULL))
) {{.strict}};
CREATE INDEX endpoints_of_account ON endpoints (account_id, id);

-- Events on their way to endpoints: one row for each event and endpoint, with its last attempt.
-- next_at is when the next attempt is due. A sender that claims the row moves it to the end of the
-- claim. There is no foreign key: a task that ends beside the removal of an endpoint may leave a
-- row, which nobody claims and retention removes.
CREATE TABLE endpoint_deliveries (
    event_id    text        NOT NULL,
    endpoint_id text        NOT NULL,
    type        text        NOT NULL,
    task_id     text        NOT NULL DEFAULT '',
    body        {{.bytes}},
    body_at     {{.time}},
    state       text        NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
    attempts    integer     NOT NULL DEFAULT 0,
    created_at  {{.time}}   NOT NULL,
    next_at     {{.time}},
    tried_at    {{.time}},
    status      integer     NOT NULL DEFAULT 0,
    error       text        NOT NULL DEFAULT '',
    answer      text        NOT NULL DEFAULT '',
    headers     text,
    duration_us {{.bigint}} NOT NULL DEFAULT 0,
    PRIMARY KEY (event_id, endpoint_id),
    CONSTRAINT endpoint_deliveries_due CHECK ((state = 'pending') = (next_at IS NOT NULL))
) {{.strict}};
CREATE INDEX endpoint_deliveries_list ON endpoint_deliveries (endpoint_id, created_at, event_id);
CREATE INDEX endpoint_deliveries_failed ON endpoint_deliveries (endpoint_id, created_at, event_id) WHERE state = 'failed';
CREATE INDEX endpoint_deliveries_due_at ON endpoint_deliveries (endpoint_id, next_at) WHERE state = 'pending';

-- How much of its quota and caps a key had used when that was last told: 0, 80 or 100 percent of
-- what bound names. began is when the period of a cap began, in Unix seconds; 0 for the quota.
CREATE TABLE key_marks (
    key_id  text        NOT NULL REFERENCES keys (id),
    bound   text        NOT NULL CHECK (bound IN ('quota', 'day', 'week', 'month')),
    began   {{.bigint}} NOT NULL,
    percent integer     NOT NULL,
    PRIMARY KEY (key_id, bound)
) {{.strict}};

-- Each endpoint has secrets of its own. Those of the account have no endpoint.
ALTER TABLE webhook_secrets ADD COLUMN endpoint_id text NOT NULL DEFAULT '';
DROP INDEX webhook_secrets_current;
CREATE UNIQUE INDEX webhook_secrets_current ON webhook_secrets (account_id, endpoint_id) WHERE expires_at IS NULL;
{{if .postgres}}
ALTER TABLE endpoint_deliveries SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
{{end}}

-- +goose Down
DELETE FROM webhook_secrets WHERE endpoint_id <> '';
DROP INDEX webhook_secrets_current;
CREATE UNIQUE INDEX webhook_secrets_current ON webhook_secrets (account_id) WHERE expires_at IS NULL;
ALTER TABLE webhook_secrets DROP COLUMN endpoint_id;
DROP TABLE key_marks;
DROP TABLE endpoint_deliveries;
DROP TABLE endpoints;
