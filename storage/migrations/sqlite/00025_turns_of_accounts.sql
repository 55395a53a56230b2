-- +goose Up
-- What the reconciler takes from accounts in turns is read by account, and open
-- tasks in one order from where it stopped: as much of the index as is returned.
-- None of them has checked_at, which changes at each look: an update of a column
-- that no index has touches no index.
DROP INDEX tasks_unseen;
CREATE INDEX tasks_unseen ON tasks (account_id, created_at, id) WHERE status IN ('pending', 'processing') AND run_seen_at IS NULL;
DROP INDEX tasks_cancels;
CREATE INDEX tasks_cancels ON tasks (account_id, cancel_requested_at, id) WHERE status IN ('pending', 'processing') AND cancel_requested_at IS NOT NULL;
DROP INDEX tasks_open;
CREATE INDEX tasks_open ON tasks (deadline_at, id) WHERE status IN ('pending', 'processing');

-- +goose Down
DROP INDEX tasks_open;
CREATE INDEX tasks_open ON tasks (deadline_at) WHERE status IN ('pending', 'processing');
DROP INDEX tasks_cancels;
CREATE INDEX tasks_cancels ON tasks (cancel_requested_at) WHERE status IN ('pending', 'processing') AND cancel_requested_at IS NOT NULL;
DROP INDEX tasks_unseen;
CREATE INDEX tasks_unseen ON tasks (created_at) WHERE status IN ('pending', 'processing') AND run_seen_at IS NULL;
