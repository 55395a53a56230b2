-- +goose Up
-- Endpoints: addresses of an account that receive events. below_balance says whether the account
-- had less than balance_low available at the last check. turn_at is when deliveries were last
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

-- Deliveries: one row for each event and endpoint, with the last attempt. next_at is when the
-- next attempt is due. A sender that claims the row sets next_at to the end of its claim. There is
-- no foreign key: a task that ends while the endpoint is being removed may leave a row. No sender
-- claims such a row, and retention removes it.
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

-- The last reported use of a key's quota and caps: 0, 80 or 100 percent of the limit that bound
-- names. began is the start of the cap's period in Unix seconds, and 0 for the quota.
CREATE TABLE key_marks (
    key_id  text        NOT NULL REFERENCES keys (id),
    bound   text        NOT NULL CHECK (bound IN ('quota', 'day', 'week', 'month')),
    began   {{.bigint}} NOT NULL,
    percent integer     NOT NULL,
    PRIMARY KEY (key_id, bound)
) {{.strict}};

-- Each endpoint has its own secrets. A secret with an empty endpoint_id belongs to the account.
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
