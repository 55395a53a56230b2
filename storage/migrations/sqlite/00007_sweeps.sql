-- +goose Up
-- When to look for files that were copied for an end that did not come.
ALTER TABLE tasks ADD COLUMN sweep_at integer;
CREATE INDEX tasks_sweeps ON tasks (sweep_at) WHERE sweep_at IS NOT NULL;

-- +goose Down
DROP INDEX tasks_sweeps;
ALTER TABLE tasks DROP COLUMN sweep_at;
