-- +goose Up
-- The vendor's names of models that the vendor says it has no more, each with the time until
-- which no job goes to its route: a JSON object, or empty.
ALTER TABLE channels ADD COLUMN retired text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE channels DROP COLUMN retired;
