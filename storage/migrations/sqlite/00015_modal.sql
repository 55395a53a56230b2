-- +goose Up
-- A task may wait for modal parameters, which its client gives in a call of its
-- own: MODAL until then, SUBMITTED after it, EXPIRED where none came in time.
ALTER TABLE tasks ADD COLUMN art_state text NOT NULL DEFAULT '' CHECK (art_state IN ('', 'MODAL', 'SUBMITTED', 'EXPIRED'));
ALTER TABLE tasks ADD COLUMN modal_n integer NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN modal_until integer;
ALTER TABLE tasks ADD COLUMN modal_input text;

-- +goose Down
ALTER TABLE tasks DROP COLUMN modal_input;
ALTER TABLE tasks DROP COLUMN modal_until;
ALTER TABLE tasks DROP COLUMN modal_n;
ALTER TABLE tasks DROP COLUMN art_state;
