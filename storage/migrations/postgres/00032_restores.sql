-- +goose Up
-- To which time the database was restored, and when that was first noted. Rows that were
-- open then may lack what happened after the backup.
CREATE TABLE restores (
    restored_to timestamptz NOT NULL PRIMARY KEY,
    noted_at    timestamptz NOT NULL
);
ALTER TABLE tasks ADD COLUMN restored_at timestamptz;
ALTER TABLE tasks ADD COLUMN tail_lost boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE tasks DROP COLUMN tail_lost;
ALTER TABLE tasks DROP COLUMN restored_at;
DROP TABLE restores;
