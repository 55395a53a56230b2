-- +goose Up
-- Lists by type, status and model find their tasks next to each other.
CREATE INDEX tasks_kind ON tasks (account_id, type, status, id) WHERE erased_at IS NULL;
CREATE INDEX tasks_model ON tasks (account_id, model, type, status, id) WHERE erased_at IS NULL;

-- +goose Down
DROP INDEX tasks_model;
DROP INDEX tasks_kind;
