-- +goose Up
-- A task may be erased: its row stays for the money, without what its client or
-- a vendor wrote. Its inputs alone go when it ends, where its account says so.
ALTER TABLE tasks ADD COLUMN erased_at timestamptz;
ALTER TABLE tasks ADD COLUMN inputs_erased_at timestamptz;

-- Erased tasks are in no list, however many there are.
DROP INDEX tasks_account;
CREATE INDEX tasks_account ON tasks (account_id, id) WHERE erased_at IS NULL;

-- The task that a request works on: it stays while the request may need it. Plans
-- are read as text: as JSON, one in which a vendor's text has U+0000 is an error.
ALTER TABLE tasks ADD COLUMN source_id text NOT NULL DEFAULT '';
UPDATE tasks SET source_id = COALESCE(substring(plan FROM '"source":\{"task_id":"([^"]*)"'), '') WHERE plan LIKE '%"source":{"task_id":%';
CREATE INDEX tasks_source ON tasks (source_id) WHERE source_id <> '';

-- +goose Down
DROP INDEX tasks_source;
ALTER TABLE tasks DROP COLUMN source_id;
DROP INDEX tasks_account;
CREATE INDEX tasks_account ON tasks (account_id, id);
ALTER TABLE tasks DROP COLUMN inputs_erased_at;
ALTER TABLE tasks DROP COLUMN erased_at;
