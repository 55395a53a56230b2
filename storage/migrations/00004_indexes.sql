-- +goose NO TRANSACTION
-- +goose Up
-- Indexes of large tables, built while other processes write to them. A build that was interrupted
-- leaves an invalid index, so each is dropped first. The indexes serve the filters of the audit
-- list, the search by a vendor's job id, and the list of a key's tasks.
DROP INDEX IF EXISTS audit_object;
CREATE INDEX {{.concurrently}} audit_object ON audit (object, id);
DROP INDEX IF EXISTS audit_action;
CREATE INDEX {{.concurrently}} audit_action ON audit (action, id);
DROP INDEX IF EXISTS audit_acted_by;
CREATE INDEX {{.concurrently}} audit_acted_by ON audit (acted_by, id);
DROP INDEX IF EXISTS attempts_job;
CREATE INDEX {{.concurrently}} attempts_job ON attempts (job_id) WHERE job_id <> '';
DROP INDEX IF EXISTS tasks_of_key;
CREATE INDEX {{.concurrently}} tasks_of_key ON tasks (account_id, key_id, id {{.bytewise}}) WHERE erased_at IS NULL;

-- +goose Down
DROP INDEX IF EXISTS tasks_of_key;
DROP INDEX IF EXISTS attempts_job;
DROP INDEX IF EXISTS audit_acted_by;
DROP INDEX IF EXISTS audit_action;
DROP INDEX IF EXISTS audit_object;
