-- +goose Up
-- What the end of a hold was about stays in the ledger when the task is gone. An
-- end without a model is not counted yet: it is older than this, or was stored by
-- an older process.
ALTER TABLE ledger_transfers ADD COLUMN model text;
ALTER TABLE ledger_transfers ADD COLUMN provider text;
ALTER TABLE ledger_transfers ADD COLUMN status text;
CREATE INDEX ledger_uncounted ON ledger_transfers (account_id, at) WHERE model IS NULL AND kind IN ('post', 'void');
-- Statements go by time; so does the list of an account's transfers from now on.
CREATE INDEX ledger_account_time ON ledger_transfers (account_id, at, id);
DROP INDEX ledger_account;
-- For what all accounts did within an hour. Rows come nearly in order of time.
CREATE INDEX ledger_time ON ledger_transfers USING brin (at) WITH (pages_per_range = 16, autosummarize = on);
CREATE INDEX tasks_account_open ON tasks (account_id, created_at) WHERE status IN ('pending', 'processing');

-- Sums of the counted ends, by the hour and the day (UTC) in which they were
-- stored, and of what was held for them, by those in which it was taken.
CREATE TABLE usage_sums (
    account_id text        NOT NULL,
    span       text        NOT NULL CHECK (span IN ('hour', 'day')),
    begins_at  timestamptz NOT NULL,
    key_id     text        NOT NULL,
    model      text        NOT NULL,
    provider   text        NOT NULL,
    cost       bigint      NOT NULL DEFAULT 0,
    released   bigint      NOT NULL DEFAULT 0,
    taken      bigint      NOT NULL DEFAULT 0,
    completed  bigint      NOT NULL DEFAULT 0,
    failed     bigint      NOT NULL DEFAULT 0,
    cancelled  bigint      NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, span, begins_at, key_id, model, provider)
) WITH (fillfactor = 50);
CREATE INDEX usage_sums_time ON usage_sums (span, begins_at);

-- What the vendor charged for a job, in millionths of its own unit, and since when
-- that waits to be counted.
ALTER TABLE attempts ADD COLUMN vendor_amount bigint CHECK (vendor_amount >= 0);
ALTER TABLE attempts ADD COLUMN vendor_unit text NOT NULL DEFAULT '';
ALTER TABLE attempts ADD COLUMN vendor_uncounted_at timestamptz;
CREATE INDEX attempts_vendor_uncounted ON attempts (vendor_uncounted_at) WHERE vendor_uncounted_at IS NOT NULL;

-- Its sums, by the hour in which it was stated.
CREATE TABLE vendor_sums (
    account_id text        NOT NULL,
    begins_at  timestamptz NOT NULL,
    key_id     text        NOT NULL,
    model      text        NOT NULL,
    provider   text        NOT NULL,
    unit       text        NOT NULL,
    amount     bigint      NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, begins_at, key_id, model, provider, unit)
) WITH (fillfactor = 50);
CREATE INDEX vendor_sums_time ON vendor_sums (begins_at);

-- +goose Down
DROP TABLE vendor_sums;
DROP INDEX attempts_vendor_uncounted;
ALTER TABLE attempts DROP COLUMN vendor_uncounted_at, DROP COLUMN vendor_unit, DROP COLUMN vendor_amount;
DROP TABLE usage_sums;
DROP INDEX tasks_account_open, ledger_time;
CREATE INDEX ledger_account ON ledger_transfers (account_id, id);
DROP INDEX ledger_account_time, ledger_uncounted;
ALTER TABLE ledger_transfers DROP COLUMN status, DROP COLUMN provider, DROP COLUMN model;
