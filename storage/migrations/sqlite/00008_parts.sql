-- +goose Up
-- The calls of an attempt whose job takes several.
CREATE TABLE attempt_parts (
    task_id     text    NOT NULL,
    n           integer NOT NULL,
    part        integer NOT NULL CHECK (part >= 0),
    state       text    NOT NULL CHECK (state IN ('intent', 'done', 'refused', 'unknown')),
    send_before integer NOT NULL,
    sends       integer NOT NULL DEFAULT 1,
    submission  text,
    failure     text,
    error       text    NOT NULL DEFAULT '',
    created_at  integer NOT NULL,
    ended_at    integer,
    PRIMARY KEY (task_id, n, part),
    FOREIGN KEY (task_id, n) REFERENCES attempts (task_id, n)
) STRICT;

-- What one adapter had fields of its own for in each reference is its state now.
UPDATE attempts SET ref = json_set(json_remove(ref, '$.endpoint', '$.want_watermark'), '$.state',
        (ref ->> 'endpoint') || CASE WHEN ref ->> 'want_watermark' THEN ' watermark' ELSE '' END)
    WHERE ref ->> 'endpoint' IS NOT NULL;
UPDATE awaits SET ref = json_set(json_remove(ref, '$.endpoint', '$.want_watermark'), '$.state',
        (ref ->> 'endpoint') || CASE WHEN ref ->> 'want_watermark' THEN ' watermark' ELSE '' END)
    WHERE ref ->> 'endpoint' IS NOT NULL;

-- +goose Down
UPDATE awaits SET ref = json_set(json_remove(ref, '$.state'), '$.endpoint', replace(ref ->> 'state', ' watermark', ''),
        '$.want_watermark', json(CASE WHEN ref ->> 'state' LIKE '% watermark' THEN 'true' ELSE 'false' END))
    WHERE ref ->> 'state' IS NOT NULL;
UPDATE attempts SET ref = json_set(json_remove(ref, '$.state'), '$.endpoint', replace(ref ->> 'state', ' watermark', ''),
        '$.want_watermark', json(CASE WHEN ref ->> 'state' LIKE '% watermark' THEN 'true' ELSE 'false' END))
    WHERE ref ->> 'state' IS NOT NULL;
DROP TABLE attempt_parts;
