-- +goose Up
-- Two fingerprints of one vendor account: a job that the first had made was
-- found with the second. The pairs are few, as keys are seldom renewed.
CREATE TABLE account_proofs (
    made    text        NOT NULL,
    found   text        NOT NULL,
    channel text        NOT NULL,
    task_id text        NOT NULL,
    n       integer     NOT NULL,
    at      timestamptz NOT NULL,
    PRIMARY KEY (made, found)
);

-- +goose Down
DROP TABLE account_proofs;
