-- +goose Up
-- A row that is polled for again after a trouble, until the vendor has answered.
ALTER TABLE awaits ADD COLUMN unheard integer NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE awaits DROP COLUMN unheard;
