-- +goose Up
-- What bounds a key, and an account with all its keys: submits a minute, tasks in
-- flight, and what a key may spend in a day, a week and a month. What counts is
-- kept in the same row, since every hold writes it anyway: the beginning of the
-- period that was counted last, and the sum in it.
ALTER TABLE accounts ADD COLUMN rate integer CHECK (rate >= 0);
ALTER TABLE accounts ADD COLUMN in_flight_cap integer CHECK (in_flight_cap >= 0);
ALTER TABLE accounts ADD COLUMN in_flight integer NOT NULL DEFAULT 0;
ALTER TABLE accounts ADD COLUMN erase_inputs integer NOT NULL DEFAULT 0;

ALTER TABLE keys ADD COLUMN scopes text NOT NULL DEFAULT '["generate","read","manage"]';
ALTER TABLE keys ADD COLUMN rate integer CHECK (rate >= 0);
ALTER TABLE keys ADD COLUMN in_flight_cap integer CHECK (in_flight_cap >= 0);
ALTER TABLE keys ADD COLUMN in_flight integer NOT NULL DEFAULT 0;
ALTER TABLE keys ADD COLUMN cap_day integer CHECK (cap_day >= 0);
ALTER TABLE keys ADD COLUMN cap_week integer CHECK (cap_week >= 0);
ALTER TABLE keys ADD COLUMN cap_month integer CHECK (cap_month >= 0);
ALTER TABLE keys ADD COLUMN day_start integer;
ALTER TABLE keys ADD COLUMN day_used integer NOT NULL DEFAULT 0;
ALTER TABLE keys ADD COLUMN week_start integer;
ALTER TABLE keys ADD COLUMN week_used integer NOT NULL DEFAULT 0;
ALTER TABLE keys ADD COLUMN month_start integer;
ALTER TABLE keys ADD COLUMN month_used integer NOT NULL DEFAULT 0;

-- Rotation makes a new key of a key. What both share stands in the row of the
-- first: purse_id names it.
ALTER TABLE keys ADD COLUMN purse_id text REFERENCES keys (id);
ALTER TABLE keys ADD COLUMN successor_id text REFERENCES keys (id);
CREATE INDEX keys_purse ON keys (purse_id) WHERE purse_id IS NOT NULL;

-- +goose Down
DROP INDEX keys_purse;
ALTER TABLE keys DROP COLUMN successor_id;
ALTER TABLE keys DROP COLUMN purse_id;
ALTER TABLE keys DROP COLUMN month_used;
ALTER TABLE keys DROP COLUMN month_start;
ALTER TABLE keys DROP COLUMN week_used;
ALTER TABLE keys DROP COLUMN week_start;
ALTER TABLE keys DROP COLUMN day_used;
ALTER TABLE keys DROP COLUMN day_start;
ALTER TABLE keys DROP COLUMN cap_month;
ALTER TABLE keys DROP COLUMN cap_week;
ALTER TABLE keys DROP COLUMN cap_day;
ALTER TABLE keys DROP COLUMN in_flight;
ALTER TABLE keys DROP COLUMN in_flight_cap;
ALTER TABLE keys DROP COLUMN rate;
ALTER TABLE keys DROP COLUMN scopes;
ALTER TABLE accounts DROP COLUMN erase_inputs;
ALTER TABLE accounts DROP COLUMN in_flight;
ALTER TABLE accounts DROP COLUMN in_flight_cap;
ALTER TABLE accounts DROP COLUMN rate;
