-- +goose Up
-- What a task's job made beside its files: songs, voices, buttons, words.
ALTER TABLE tasks ADD COLUMN made text;

-- +goose Down
ALTER TABLE tasks DROP COLUMN made;
