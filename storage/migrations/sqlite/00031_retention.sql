-- +goose Up
-- How far retention is with each kind of things: up to which id, or key of the
-- bucket, nothing is left to remove, how much went, and when it last came to the end.
CREATE TABLE retention (
    kind     text    PRIMARY KEY,
    mark     text    NOT NULL DEFAULT '',
    removed  integer NOT NULL DEFAULT 0,
    ended_at integer
) STRICT;

-- +goose Down
DROP TABLE retention;
