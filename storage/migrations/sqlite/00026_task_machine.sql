-- +goose Up
-- What the next step of a task depends on: see package task.
ALTER TABLE tasks ADD COLUMN fail_requested_at integer;
ALTER TABLE tasks ADD COLUMN retry_at integer;
ALTER TABLE tasks ADD COLUMN refusals integer NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN reroute_to text NOT NULL DEFAULT '';

ALTER TABLE attempts ADD COLUMN call_ends integer;
ALTER TABLE attempts ADD COLUMN can_stop integer NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN lost integer NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN unknown_since integer;
ALTER TABLE attempts ADD COLUMN lookups integer NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN looked_at integer;
ALTER TABLE attempts ADD COLUMN elsewhere integer NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN given_up_at integer;
ALTER TABLE attempts ADD COLUMN last_asked_at integer;
ALTER TABLE attempts ADD COLUMN stop_tried integer NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN unusable text;

ALTER TABLE attempt_parts ADD COLUMN call_ends integer;

-- +goose Down
ALTER TABLE attempt_parts DROP COLUMN call_ends;
ALTER TABLE attempts DROP COLUMN unusable;
ALTER TABLE attempts DROP COLUMN stop_tried;
ALTER TABLE attempts DROP COLUMN last_asked_at;
ALTER TABLE attempts DROP COLUMN given_up_at;
ALTER TABLE attempts DROP COLUMN elsewhere;
ALTER TABLE attempts DROP COLUMN looked_at;
ALTER TABLE attempts DROP COLUMN lookups;
ALTER TABLE attempts DROP COLUMN unknown_since;
ALTER TABLE attempts DROP COLUMN lost;
ALTER TABLE attempts DROP COLUMN can_stop;
ALTER TABLE attempts DROP COLUMN call_ends;
ALTER TABLE tasks DROP COLUMN reroute_to;
ALTER TABLE tasks DROP COLUMN refusals;
ALTER TABLE tasks DROP COLUMN retry_at;
ALTER TABLE tasks DROP COLUMN fail_requested_at;
