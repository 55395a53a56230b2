-- +goose Up
-- Which task of an account made what an id of a vendor names.
CREATE TABLE makers (
    account_id text    NOT NULL,
    kind       text    NOT NULL CHECK (kind IN ('clip', 'voice')),
    vendor_id  text    NOT NULL,
    task_id    text    NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    position   integer NOT NULL CHECK (position >= 0),
    PRIMARY KEY (account_id, kind, vendor_id)
) STRICT;
CREATE INDEX makers_task ON makers (task_id);

-- +goose Down
DROP TABLE makers;
