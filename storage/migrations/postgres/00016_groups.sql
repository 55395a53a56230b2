-- +goose Up
-- Under whose terms a task was submitted: what a group may have in flight.
ALTER TABLE tasks ADD COLUMN group_name text NOT NULL DEFAULT '';
CREATE INDEX tasks_group ON tasks (group_name) WHERE status IN ('pending', 'processing');

-- +goose Down
DROP INDEX tasks_group;
ALTER TABLE tasks DROP COLUMN group_name;
