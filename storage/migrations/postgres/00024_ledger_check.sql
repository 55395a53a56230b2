-- +goose Up
-- In which transaction a transfer was stored: what one that has ended may have
-- stored is closed for good, whatever the clocks said. The database fills it in, for
-- older processes too. What is older than this column has none.
ALTER TABLE ledger_transfers ADD COLUMN position bigint;
ALTER TABLE ledger_transfers ALTER COLUMN position SET DEFAULT CAST(CAST(pg_current_xact_id() AS text) AS bigint);
CREATE INDEX ledger_position ON ledger_transfers (position, id) WHERE position IS NOT NULL;

-- How far a check of the ledger is: through the old transfers by their ids (NULL:
-- through all of them), then by position. Old is what is before floor. Positions
-- mean something in one cluster of databases only.
CREATE TABLE ledger_checks (
    run         text        PRIMARY KEY,
    cluster     text        NOT NULL,
    scan_after  text,
    floor       bigint      NOT NULL,
    position    bigint      NOT NULL,
    transfer_id text        NOT NULL,
    moved_at    timestamptz NOT NULL
);

-- What the transfers come to that it went through.
CREATE TABLE ledger_check_sums (
    run        text   NOT NULL,
    account_id text   NOT NULL,
    key_id     text   NOT NULL,
    what       text   NOT NULL,
    day        bigint NOT NULL,
    amount     bigint NOT NULL,
    PRIMARY KEY (run, account_id, key_id, what, day)
) WITH (fillfactor = 70);

-- What it is to look at again: what broke a rule, and the hours of the usage that
-- it went through.
CREATE TABLE ledger_check_marks (
    run  text   NOT NULL,
    kind text   NOT NULL,
    id   text   NOT NULL,
    n    bigint NOT NULL,
    PRIMARY KEY (run, kind, id)
);

-- +goose Down
DROP TABLE ledger_check_marks, ledger_check_sums, ledger_checks;
DROP INDEX ledger_position;
ALTER TABLE ledger_transfers DROP COLUMN position;
