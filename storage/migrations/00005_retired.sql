-- +goose Up
-- Models that the vendor has withdrawn: a JSON object from the vendor's name of each model to the
-- time until which its route gets no jobs. It is empty if there are none.
ALTER TABLE channels ADD COLUMN retired text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE channels DROP COLUMN retired;
