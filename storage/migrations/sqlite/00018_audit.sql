-- +goose Up
-- Who changed what and when, over the admin API or with a key. It outlives what
-- it tells of, so it refers to nothing.
CREATE TABLE audit (
    id         text NOT NULL PRIMARY KEY,
    at         integer NOT NULL,
    acted_by   text NOT NULL,
    action     text NOT NULL,
    object     text NOT NULL,
    account_id text,
    old_values text,
    new_values text,
    address    text NOT NULL,
    request_id text NOT NULL
);
CREATE INDEX audit_account ON audit (account_id, id);

-- +goose Down
DROP TABLE audit;
