-- +goose Up
-- To which time the database was restored, and when that was first noted. Rows that were
-- open then may lack what happened after the backup.
CREATE TABLE restores (
    restored_to integer NOT NULL PRIMARY KEY,
    noted_at    integer NOT NULL
) STRICT;
ALTER TABLE tasks ADD COLUMN restored_at integer;
ALTER TABLE tasks ADD COLUMN tail_lost integer NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE tasks DROP COLUMN tail_lost;
ALTER TABLE tasks DROP COLUMN restored_at;
DROP TABLE restores;
