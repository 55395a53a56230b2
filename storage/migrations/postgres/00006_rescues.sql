-- +goose Up
-- How often nothing but force was left to get a task's run going, or once it
-- has ended the callback's round, and when that is looked at again.
ALTER TABLE tasks ADD COLUMN rescues integer NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN rescue_at timestamptz;
CREATE INDEX tasks_parked_since ON tasks (parked_at) WHERE status IN ('pending', 'processing') AND parked_at IS NOT NULL;

-- +goose Down
DROP INDEX tasks_parked_since;
ALTER TABLE tasks DROP COLUMN rescue_at;
ALTER TABLE tasks DROP COLUMN rescues;
