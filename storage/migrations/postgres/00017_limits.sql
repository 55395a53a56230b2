-- +goose Up
-- What bounds a key, and an account with all its keys: submits a minute, tasks in
-- flight, and what a key may spend in a day, a week and a month. What counts is
-- kept in the same row, since every hold writes it anyway: the beginning of the
-- period that was counted last, and the sum in it.
ALTER TABLE accounts ADD COLUMN rate integer CHECK (rate >= 0);
ALTER TABLE accounts ADD COLUMN in_flight_cap integer CHECK (in_flight_cap >= 0);
ALTER TABLE accounts ADD COLUMN in_flight integer NOT NULL DEFAULT 0;
ALTER TABLE accounts ADD COLUMN erase_inputs boolean NOT NULL DEFAULT false;

ALTER TABLE keys ADD COLUMN scopes text NOT NULL DEFAULT '["generate","read","manage"]';
ALTER TABLE keys ADD COLUMN rate integer CHECK (rate >= 0);
ALTER TABLE keys ADD COLUMN in_flight_cap integer CHECK (in_flight_cap >= 0);
ALTER TABLE keys ADD COLUMN in_flight integer NOT NULL DEFAULT 0;
ALTER TABLE keys ADD COLUMN cap_day bigint CHECK (cap_day >= 0);
ALTER TABLE keys ADD COLUMN cap_week bigint CHECK (cap_week >= 0);
ALTER TABLE keys ADD COLUMN cap_month bigint CHECK (cap_month >= 0);
ALTER TABLE keys ADD COLUMN day_start timestamptz;
ALTER TABLE keys ADD COLUMN day_used bigint NOT NULL DEFAULT 0;
ALTER TABLE keys ADD COLUMN week_start timestamptz;
ALTER TABLE keys ADD COLUMN week_used bigint NOT NULL DEFAULT 0;
ALTER TABLE keys ADD COLUMN month_start timestamptz;
ALTER TABLE keys ADD COLUMN month_used bigint NOT NULL DEFAULT 0;

-- Rotation makes a new key of a key. What both share stands in the row of the
-- first: purse_id names it.
ALTER TABLE keys ADD COLUMN purse_id text REFERENCES keys (id);
ALTER TABLE keys ADD COLUMN successor_id text REFERENCES keys (id);
CREATE INDEX keys_purse ON keys (purse_id) WHERE purse_id IS NOT NULL;

-- +goose Down
DROP INDEX keys_purse;
ALTER TABLE keys DROP COLUMN successor_id, DROP COLUMN purse_id;
ALTER TABLE keys DROP COLUMN month_used, DROP COLUMN month_start, DROP COLUMN week_used, DROP COLUMN week_start,
    DROP COLUMN day_used, DROP COLUMN day_start, DROP COLUMN cap_month, DROP COLUMN cap_week, DROP COLUMN cap_day,
    DROP COLUMN in_flight, DROP COLUMN in_flight_cap, DROP COLUMN rate, DROP COLUMN scopes;
ALTER TABLE accounts DROP COLUMN erase_inputs, DROP COLUMN in_flight, DROP COLUMN in_flight_cap, DROP COLUMN rate;
