-- +goose Up
-- The span of a task's submit: runs that are started later, or elsewhere, are in its trace.
ALTER TABLE tasks ADD COLUMN trace_parent text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE tasks DROP COLUMN trace_parent;
