-- +goose Up
-- Lists of operators, of all accounts, find their tasks next to each other.
CREATE INDEX tasks_made ON tasks (type, model, channel, status, id) WHERE erased_at IS NULL;
CREATE INDEX tasks_stuck ON tasks (id) WHERE status IN ('pending', 'processing') AND parked_at IS NOT NULL;
CREATE INDEX wakes_stuck ON wakes (task_id) WHERE kind = 'run' AND tries >= 3;
CREATE INDEX tasks_references ON tasks (reference, account_id, id) WHERE reference <> '';
DROP INDEX tasks_reference;

-- +goose Down
CREATE INDEX tasks_reference ON tasks (account_id, reference, id) WHERE reference <> '';
DROP INDEX tasks_references;
DROP INDEX wakes_stuck;
DROP INDEX tasks_stuck;
DROP INDEX tasks_made;
