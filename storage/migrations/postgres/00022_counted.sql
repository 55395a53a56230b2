-- +goose Up
-- To which day in UTC a hold was counted, and with it to which week and month of
-- its key's caps. Of a post or a void: from which day the rest was taken out
-- again. Empty where a process that knows no caps did it.
ALTER TABLE ledger_transfers ADD COLUMN counted_day timestamptz;

-- +goose Down
ALTER TABLE ledger_transfers DROP COLUMN counted_day;
