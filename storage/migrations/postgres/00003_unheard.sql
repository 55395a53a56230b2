-- +goose Up
-- A row that is polled for again after a trouble, until the vendor has answered.
ALTER TABLE awaits ADD COLUMN unheard boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE awaits DROP COLUMN unheard;
