-- +goose Up
-- The calls of an attempt whose job takes several.
CREATE TABLE attempt_parts (
    task_id     text        NOT NULL,
    n           integer     NOT NULL,
    part        integer     NOT NULL CHECK (part >= 0),
    state       text        NOT NULL CHECK (state IN ('intent', 'done', 'refused', 'unknown')),
    send_before timestamptz NOT NULL,
    sends       integer     NOT NULL DEFAULT 1,
    submission  text,
    failure     text,
    error       text        NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL,
    ended_at    timestamptz,
    PRIMARY KEY (task_id, n, part),
    FOREIGN KEY (task_id, n) REFERENCES attempts (task_id, n)
);

-- What one adapter had fields of its own for in each reference is its state now.
UPDATE attempts SET ref = (CAST(ref AS jsonb) - 'endpoint' - 'want_watermark' || jsonb_build_object('state',
        CAST(ref AS jsonb) ->> 'endpoint' || CASE WHEN CAST(ref AS jsonb) ->> 'want_watermark' = 'true' THEN ' watermark' ELSE '' END))::text
    WHERE CAST(ref AS jsonb) ->> 'endpoint' IS NOT NULL;
UPDATE awaits SET ref = (CAST(ref AS jsonb) - 'endpoint' - 'want_watermark' || jsonb_build_object('state',
        CAST(ref AS jsonb) ->> 'endpoint' || CASE WHEN CAST(ref AS jsonb) ->> 'want_watermark' = 'true' THEN ' watermark' ELSE '' END))::text
    WHERE CAST(ref AS jsonb) ->> 'endpoint' IS NOT NULL;

-- +goose Down
UPDATE awaits SET ref = (CAST(ref AS jsonb) - 'state' || jsonb_build_object('endpoint', split_part(CAST(ref AS jsonb) ->> 'state', ' ', 1),
        'want_watermark', CAST(ref AS jsonb) ->> 'state' LIKE '% watermark'))::text
    WHERE CAST(ref AS jsonb) ->> 'state' IS NOT NULL;
UPDATE attempts SET ref = (CAST(ref AS jsonb) - 'state' || jsonb_build_object('endpoint', split_part(CAST(ref AS jsonb) ->> 'state', ' ', 1),
        'want_watermark', CAST(ref AS jsonb) ->> 'state' LIKE '% watermark'))::text
    WHERE CAST(ref AS jsonb) ->> 'state' IS NOT NULL;
DROP TABLE attempt_parts;
