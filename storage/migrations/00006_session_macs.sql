-- +goose Up
-- mac: of an operator's session, made with an encryption key. A row without one makes no operator.
ALTER TABLE sessions ADD COLUMN mac {{.bytes}};

-- +goose Down
ALTER TABLE sessions DROP COLUMN mac;
