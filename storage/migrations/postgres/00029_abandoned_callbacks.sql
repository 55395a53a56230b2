-- +goose NO TRANSACTION
-- +goose Up
-- Operators find the callbacks that were given up, to have them sent again. Built while
-- tasks are written, as those of 23.
SELECT set_config('mediagate.lock_timeout', current_setting('lock_timeout'), false),
    set_config('lock_timeout', '0', false) WHERE current_setting('mediagate.session', true) = 'own';
DROP INDEX CONCURRENTLY IF EXISTS tasks_abandoned;
CREATE INDEX CONCURRENTLY tasks_abandoned ON tasks (id) WHERE webhook_state = 'abandoned' AND erased_at IS NULL;
SELECT set_config('lock_timeout', current_setting('mediagate.lock_timeout'), false) WHERE current_setting('mediagate.session', true) = 'own';

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS tasks_abandoned;
