-- +goose Up
-- Whether the vendor of a channel takes jobs, as far as is known. An open
-- breaker lets one job through at probe_at, whose sender holds the probe.
ALTER TABLE channels ADD COLUMN breaker text NOT NULL DEFAULT 'closed' CHECK (breaker IN ('closed', 'open'));
ALTER TABLE channels ADD COLUMN changed_at integer;
ALTER TABLE channels ADD COLUMN break_reason text NOT NULL DEFAULT '';
ALTER TABLE channels ADD COLUMN trips integer NOT NULL DEFAULT 0;
ALTER TABLE channels ADD COLUMN probe_at integer;
ALTER TABLE channels ADD COLUMN probe text NOT NULL DEFAULT '';
ALTER TABLE channels ADD COLUMN probe_until integer;
ALTER TABLE channels ADD COLUMN last_error text NOT NULL DEFAULT '';
ALTER TABLE channels ADD COLUMN last_error_at integer;

-- How the submits of a minute went, all processes together.
CREATE TABLE channel_minutes (
    channel  text    NOT NULL,
    minute   integer NOT NULL,
    submits  integer NOT NULL DEFAULT 0,
    failures integer NOT NULL DEFAULT 0,
    PRIMARY KEY (channel, minute)
) STRICT;

-- +goose Down
DROP TABLE channel_minutes;
ALTER TABLE channels DROP COLUMN last_error_at;
ALTER TABLE channels DROP COLUMN last_error;
ALTER TABLE channels DROP COLUMN probe_until;
ALTER TABLE channels DROP COLUMN probe;
ALTER TABLE channels DROP COLUMN probe_at;
ALTER TABLE channels DROP COLUMN trips;
ALTER TABLE channels DROP COLUMN break_reason;
ALTER TABLE channels DROP COLUMN changed_at;
ALTER TABLE channels DROP COLUMN breaker;
