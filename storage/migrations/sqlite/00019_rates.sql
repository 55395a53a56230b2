-- +goose Up
-- When somebody whose submits are limited would be at rest again, if no more
-- came: microseconds since 1970. A row that is missing says that they are.
CREATE TABLE rates (
    id  text    NOT NULL PRIMARY KEY,
    tat integer NOT NULL
) STRICT;

-- +goose Down
DROP TABLE rates;
