-- +goose Up
-- Speech is answered at once and makes no task. Its hold hangs on a row of its
-- own, with a lease: whoever finds it over voids the hold.
CREATE TABLE speeches (
    id         text    PRIMARY KEY,
    account_id text    NOT NULL,
    key_id     text    NOT NULL,
    request_id text    NOT NULL,
    model      text    NOT NULL,
    charges    text    NOT NULL,
    hold       integer NOT NULL CHECK (hold >= 0),
    cost       integer NOT NULL DEFAULT 0,
    state      text    NOT NULL CHECK (state IN ('open', 'posted', 'voided')),
    created_at integer NOT NULL,
    ended_at   integer,
    void_after integer NOT NULL,
    CONSTRAINT speeches_end_time CHECK ((ended_at IS NOT NULL) = (state IN ('posted', 'voided'))),
    CONSTRAINT speeches_cost CHECK (cost BETWEEN 0 AND hold AND (cost = 0 OR state = 'posted'))
) STRICT;
CREATE INDEX speeches_account ON speeches (account_id, id);
CREATE INDEX speeches_open ON speeches (void_after) WHERE state = 'open';

-- +goose Down
DROP TABLE speeches;
