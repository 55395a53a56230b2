-- +goose Up
-- In which order transfers were stored. What is older than this column has none.
ALTER TABLE ledger_transfers ADD COLUMN position integer;
CREATE INDEX ledger_position ON ledger_transfers (position, id) WHERE position IS NOT NULL;
-- +goose StatementBegin
CREATE TRIGGER ledger_positions AFTER INSERT ON ledger_transfers
BEGIN
    UPDATE ledger_transfers SET position = (SELECT COALESCE(MAX(position), 0) + 1 FROM ledger_transfers WHERE position IS NOT NULL) WHERE id = NEW.id;
END;
-- +goose StatementEnd

-- How far a check of the ledger is: through the old transfers by their ids (NULL:
-- through all of them), then by position. Old is what is before floor.
CREATE TABLE ledger_checks (
    run         text    PRIMARY KEY,
    cluster     text    NOT NULL,
    scan_after  text,
    floor       integer NOT NULL,
    position    integer NOT NULL,
    transfer_id text    NOT NULL,
    moved_at    integer NOT NULL
) STRICT;

-- What the transfers come to that it went through.
CREATE TABLE ledger_check_sums (
    run        text    NOT NULL,
    account_id text    NOT NULL,
    key_id     text    NOT NULL,
    what       text    NOT NULL,
    day        integer NOT NULL,
    amount     integer NOT NULL,
    PRIMARY KEY (run, account_id, key_id, what, day)
) STRICT;

-- What it is to look at again: what broke a rule, and the hours of the usage that
-- it went through.
CREATE TABLE ledger_check_marks (
    run  text    NOT NULL,
    kind text    NOT NULL,
    id   text    NOT NULL,
    n    integer NOT NULL,
    PRIMARY KEY (run, kind, id)
) STRICT;

-- +goose Down
DROP TABLE ledger_check_marks;
DROP TABLE ledger_check_sums;
DROP TABLE ledger_checks;
DROP TRIGGER ledger_positions;
DROP INDEX ledger_position;
ALTER TABLE ledger_transfers DROP COLUMN position;
