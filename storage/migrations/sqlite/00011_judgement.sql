-- +goose Up
-- What came of judging the media that a task's request names.
ALTER TABLE tasks ADD COLUMN judgement text;

-- +goose Down
ALTER TABLE tasks DROP COLUMN judgement;
