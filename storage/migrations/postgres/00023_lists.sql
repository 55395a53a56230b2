-- +goose NO TRANSACTION
-- +goose Up
-- Lists by type, status and model find their tasks next to each other, in bytewise
-- order of their ids, which no other index has. Built while tasks are written; what
-- a build that broke off has left is no index and goes first. A build waits for
-- transactions that began before it, for however long they take, unless a pooler
-- leads to sessions that others use too: their settings are left alone.
SELECT set_config('mediagate.lock_timeout', current_setting('lock_timeout'), false),
    set_config('lock_timeout', '0', false) WHERE current_setting('mediagate.session', true) = 'own';
DROP INDEX CONCURRENTLY IF EXISTS tasks_kind;
CREATE INDEX CONCURRENTLY tasks_kind ON tasks (account_id, type, status, id COLLATE "C") WHERE erased_at IS NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_model;
CREATE INDEX CONCURRENTLY tasks_model ON tasks (account_id, model, type, status, id COLLATE "C") WHERE erased_at IS NULL;
SELECT set_config('lock_timeout', current_setting('mediagate.lock_timeout'), false) WHERE current_setting('mediagate.session', true) = 'own';

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS tasks_model;
DROP INDEX CONCURRENTLY IF EXISTS tasks_kind;
