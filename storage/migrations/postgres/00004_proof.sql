-- +goose Up
-- What proves that a vendor has no job: the second lookup that found none; how
-- often the intent was stored; and a refusal of a repeated intent, which may
-- only mean that the vendor has the first.
ALTER TABLE attempts
    ADD COLUMN absent_again_at timestamptz,
    ADD COLUMN sends integer NOT NULL DEFAULT 1,
    ADD COLUMN refusal text;

-- +goose Down
ALTER TABLE attempts DROP COLUMN absent_again_at, DROP COLUMN sends, DROP COLUMN refusal;
