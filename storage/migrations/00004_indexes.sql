-- +goose NO TRANSACTION
-- +goose Up
-- Indexes of large tables, which others write to while these are built. One that was broken off is
-- built anew. audit: for the filters of its list; attempts: for the search by a vendor's id of a
-- job; tasks: for the list of a key's tasks.
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
