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
-- For what all accounts did within an hour.
CREATE INDEX ledger_time ON ledger_transfers (at);
CREATE INDEX tasks_account_open ON tasks (account_id, created_at) WHERE status IN ('pending', 'processing');

-- Sums of the counted ends, by the hour and the day (UTC) in which they were
-- stored, and of what was held for them, by those in which it was taken.
CREATE TABLE usage_sums (
    account_id text    NOT NULL,
    span       text    NOT NULL CHECK (span IN ('hour', 'day')),
    begins_at  integer NOT NULL,
    key_id     text    NOT NULL,
    model      text    NOT NULL,
    provider   text    NOT NULL,
    cost       integer NOT NULL DEFAULT 0,
    released   integer NOT NULL DEFAULT 0,
    taken      integer NOT NULL DEFAULT 0,
    completed  integer NOT NULL DEFAULT 0,
    failed     integer NOT NULL DEFAULT 0,
    cancelled  integer NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, span, begins_at, key_id, model, provider)
) STRICT;
CREATE INDEX usage_sums_time ON usage_sums (span, begins_at);

-- What the vendor charged for a job, in millionths of its own unit, and since when
-- that waits to be counted.
ALTER TABLE attempts ADD COLUMN vendor_amount integer CHECK (vendor_amount >= 0);
ALTER TABLE attempts ADD COLUMN vendor_unit text NOT NULL DEFAULT '';
ALTER TABLE attempts ADD COLUMN vendor_uncounted_at integer;
CREATE INDEX attempts_vendor_uncounted ON attempts (vendor_uncounted_at) WHERE vendor_uncounted_at IS NOT NULL;

-- Its sums, by the hour in which it was stated.
CREATE TABLE vendor_sums (
    account_id text    NOT NULL,
    begins_at  integer NOT NULL,
    key_id     text    NOT NULL,
    model      text    NOT NULL,
    provider   text    NOT NULL,
    unit       text    NOT NULL,
    amount     integer NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, begins_at, key_id, model, provider, unit)
) STRICT;
CREATE INDEX vendor_sums_time ON vendor_sums (begins_at);

-- +goose Down
DROP TABLE vendor_sums;
DROP INDEX attempts_vendor_uncounted;
ALTER TABLE attempts DROP COLUMN vendor_uncounted_at;
ALTER TABLE attempts DROP COLUMN vendor_unit;
ALTER TABLE attempts DROP COLUMN vendor_amount;
DROP TABLE usage_sums;
DROP INDEX tasks_account_open;
DROP INDEX ledger_time;
CREATE INDEX ledger_account ON ledger_transfers (account_id, id);
DROP INDEX ledger_account_time;
DROP INDEX ledger_uncounted;
ALTER TABLE ledger_transfers DROP COLUMN status;
ALTER TABLE ledger_transfers DROP COLUMN provider;
ALTER TABLE ledger_transfers DROP COLUMN model;
