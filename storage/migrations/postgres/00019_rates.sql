-- +goose Up
-- When somebody whose submits are limited would be at rest again, if no more
-- came: microseconds since 1970. A row that is missing says that they are. So the
-- table may be lost with a crash, and nothing of it is written ahead.
CREATE UNLOGGED TABLE rates (
    id  text   PRIMARY KEY,
    tat bigint NOT NULL
) WITH (fillfactor = 50);

-- +goose Down
DROP TABLE rates;
