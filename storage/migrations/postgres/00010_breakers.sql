-- +goose Up
-- Whether the vendor of a channel takes jobs, as far as is known. An open
-- breaker lets one job through at probe_at, whose sender holds the probe.
ALTER TABLE channels
    ADD COLUMN breaker       text        NOT NULL DEFAULT 'closed' CHECK (breaker IN ('closed', 'open')),
    ADD COLUMN changed_at    timestamptz,
    ADD COLUMN break_reason  text        NOT NULL DEFAULT '',
    ADD COLUMN trips         integer     NOT NULL DEFAULT 0,
    ADD COLUMN probe_at      timestamptz,
    ADD COLUMN probe         text        NOT NULL DEFAULT '',
    ADD COLUMN probe_until   timestamptz,
    ADD COLUMN last_error    text        NOT NULL DEFAULT '',
    ADD COLUMN last_error_at timestamptz;

-- How the submits of a minute went, all processes together.
CREATE TABLE channel_minutes (
    channel  text        NOT NULL,
    minute   timestamptz NOT NULL,
    submits  bigint      NOT NULL DEFAULT 0,
    failures bigint      NOT NULL DEFAULT 0,
    PRIMARY KEY (channel, minute)
) WITH (fillfactor = 50);

-- +goose Down
DROP TABLE channel_minutes;
ALTER TABLE channels
    DROP COLUMN breaker, DROP COLUMN changed_at, DROP COLUMN break_reason, DROP COLUMN trips, DROP COLUMN probe_at,
    DROP COLUMN probe, DROP COLUMN probe_until, DROP COLUMN last_error, DROP COLUMN last_error_at;
