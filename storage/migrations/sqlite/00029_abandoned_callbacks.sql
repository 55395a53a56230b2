-- +goose Up
-- Operators find the callbacks that were given up, to have them sent again.
CREATE INDEX tasks_abandoned ON tasks (id) WHERE webhook_state = 'abandoned' AND erased_at IS NULL;

-- +goose Down
DROP INDEX tasks_abandoned;
