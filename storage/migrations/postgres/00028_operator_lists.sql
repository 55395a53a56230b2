-- +goose NO TRANSACTION
-- +goose Up
-- Lists of operators, of all accounts, find their tasks next to each other. Built while
-- tasks are written, as those of 23.
SELECT set_config('mediagate.lock_timeout', current_setting('lock_timeout'), false),
    set_config('lock_timeout', '0', false) WHERE current_setting('mediagate.session', true) = 'own';
DROP INDEX CONCURRENTLY IF EXISTS tasks_made;
CREATE INDEX CONCURRENTLY tasks_made ON tasks (type, model, channel, status, id COLLATE "C") WHERE erased_at IS NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_stuck;
CREATE INDEX CONCURRENTLY tasks_stuck ON tasks (id COLLATE "C") WHERE status IN ('pending', 'processing') AND parked_at IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS wakes_stuck;
CREATE INDEX CONCURRENTLY wakes_stuck ON wakes (task_id COLLATE "C") WHERE kind = 'run' AND tries >= 3;
DROP INDEX CONCURRENTLY IF EXISTS tasks_references;
CREATE INDEX CONCURRENTLY tasks_references ON tasks (reference, account_id, id) WHERE reference <> '';
DROP INDEX CONCURRENTLY IF EXISTS tasks_reference;
SELECT set_config('lock_timeout', current_setting('mediagate.lock_timeout'), false) WHERE current_setting('mediagate.session', true) = 'own';

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS tasks_reference;
CREATE INDEX CONCURRENTLY tasks_reference ON tasks (account_id, reference, id) WHERE reference <> '';
DROP INDEX CONCURRENTLY IF EXISTS tasks_references;
DROP INDEX CONCURRENTLY IF EXISTS wakes_stuck;
DROP INDEX CONCURRENTLY IF EXISTS tasks_stuck;
DROP INDEX CONCURRENTLY IF EXISTS tasks_made;
