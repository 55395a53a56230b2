-- +goose Up
-- A suspended account can create no tasks, speeches or uploads.
ALTER TABLE accounts ADD COLUMN suspended {{.bool}} NOT NULL DEFAULT {{.false}};

-- Why an operator disabled the channel. It is empty for an enabled channel, and if the operator
-- gave no reason.
ALTER TABLE channels ADD COLUMN disabled_reason text NOT NULL DEFAULT '';

-- Operators have names and roles. operator_hash is the hash of the operator's key or of the
-- settings of OpenID Connect. operator and role are set by a sign-in with OpenID Connect only.
-- The table is created again, since SQLite cannot change a constraint. Everybody signs in again.
DROP TABLE sessions;
CREATE TABLE sessions (
    token_hash    {{.bytes}}  PRIMARY KEY NOT NULL,
    key_id        text        REFERENCES keys (id),
    operator_hash {{.bytes}},
    operator      text,
    role          text,
    once          {{.bool}}   NOT NULL,
    created_at    {{.time}}   NOT NULL,
    expires_at    {{.time}}   NOT NULL,
    CONSTRAINT sessions_one_holder CHECK ((key_id IS NULL) = (operator_hash IS NOT NULL)),
    CONSTRAINT sessions_role CHECK ((operator IS NULL) = (role IS NULL))
) {{.strict}};
CREATE INDEX sessions_key ON sessions (key_id) WHERE key_id IS NOT NULL;
CREATE INDEX sessions_expiry ON sessions (expires_at);

-- +goose Down
DROP TABLE sessions;
CREATE TABLE sessions (
    token_hash {{.bytes}}  PRIMARY KEY NOT NULL,
    key_id     text        REFERENCES keys (id),
    admin_hash {{.bytes}},
    once       {{.bool}}   NOT NULL,
    created_at {{.time}}   NOT NULL,
    expires_at {{.time}}   NOT NULL,
    CONSTRAINT sessions_one_holder CHECK ((key_id IS NULL) = (admin_hash IS NOT NULL))
) {{.strict}};
CREATE INDEX sessions_key ON sessions (key_id) WHERE key_id IS NOT NULL;
CREATE INDEX sessions_expiry ON sessions (expires_at);
ALTER TABLE channels DROP COLUMN disabled_reason;
ALTER TABLE accounts DROP COLUMN suspended;
