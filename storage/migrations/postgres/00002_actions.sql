-- +goose Up
-- Which activity took a command: when its answer is lost, the same one may ask again.
ALTER TABLE actions ADD COLUMN taken_by text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE actions DROP COLUMN taken_by;
