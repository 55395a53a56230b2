-- +goose Up
-- mac authenticates an operator's session with an encryption key. A row without it grants no
-- operator access.
ALTER TABLE sessions ADD COLUMN mac {{.bytes}};

-- +goose Down
ALTER TABLE sessions DROP COLUMN mac;
