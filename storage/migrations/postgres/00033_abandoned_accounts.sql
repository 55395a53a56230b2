-- +goose Up
-- Jobs of cancelled tasks that may still run count for their account, which is found by the
-- attempt's own account: a few rows, of which most submits read none. What an account may
-- ask for has two limits more.
ALTER TABLE attempts ADD COLUMN account_id text;
UPDATE attempts SET account_id = (SELECT account_id FROM tasks t WHERE t.id = attempts.task_id) WHERE ended_at IS NULL;
CREATE INDEX attempts_abandoned_account ON attempts (account_id) WHERE state = 'abandoned';
ALTER TABLE accounts ADD COLUMN unpaid_cap bigint;
ALTER TABLE accounts ADD COLUMN uploads_cap bigint;

-- +goose Down
ALTER TABLE accounts DROP COLUMN uploads_cap;
ALTER TABLE accounts DROP COLUMN unpaid_cap;
DROP INDEX attempts_abandoned_account;
ALTER TABLE attempts DROP COLUMN account_id;
