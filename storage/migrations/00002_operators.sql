-- +goose Up
-- A suspended account makes no new tasks, speeches or uploads.
ALTER TABLE accounts ADD COLUMN suspended {{.bool}} NOT NULL DEFAULT {{.false}};

-- Why an operator has disabled a channel; empty where it is enabled, or nobody said why.
ALTER TABLE channels ADD COLUMN disabled_reason text NOT NULL DEFAULT '';

-- For the filters of the audit, each in the order of the list.
CREATE INDEX audit_object ON audit (object, id);
CREATE INDEX audit_action ON audit (action, id);
CREATE INDEX audit_acted_by ON audit (acted_by, id);

-- For the search by a vendor's id of a job.
CREATE INDEX attempts_job ON attempts (job_id) WHERE job_id <> '';

-- +goose Down
DROP INDEX attempts_job;
DROP INDEX audit_acted_by;
DROP INDEX audit_action;
DROP INDEX audit_object;
ALTER TABLE channels DROP COLUMN disabled_reason;
ALTER TABLE accounts DROP COLUMN suspended;
