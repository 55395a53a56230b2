// Package storage is the gateway's database: accounts, keys, the ledger and who
// changed them, tasks and their attempts, what is to be polled, woken and delivered.
//
// The database decides, workflows drive. A task changes in one function, Change: it
// applies events of package task under the lock of the task's row. Only where many rows
// are moved at once a statement of its own does so, and names the event that it is.
// Callers may repeat any call, die between two of them, or race each other.
//
// Rows are locked in one order: the task, its attempts, its polling, its place in the
// queue, then the key, the account, and the wakes last. So the busiest rows are locked
// shortest, and no two transactions wait for each other. An endpoint is locked before its
// deliveries.
//
// A client that gives up on a request that waits, and sends it again, must not pay twice. So
// such a request has an idempotency record of its own, by which the next one adopts its task
// (adoption.go). It is in the database because another process may get the repetition.
//
// Times go by the database's clock, whichever process stores or compares them
// (Store.Now). Connections to a PostgreSQL server that has become read-only are
// closed.
//
// SQL is written out, and read into structs in the order of their fields: into a domain type
// where its fields are the columns, with the times beside it as stamps, else into a row's
// struct, whose fields name the columns (columns). GORM makes the rows of some tables, expands
// named parameters, and runs transactions.
//
// PostgreSQL and SQLite run the same SQL, but for row locks (SQLite has a
// single writer), for lists that are passed as JSON, and for a submit, whose statements are parts
// of a single one on PostgreSQL. What limits a hold is counted
// in the rows that it writes anyway (ADR 13).
//
// GORM does not leave this package: row structs are private and domain types
// carry no tags. It imports the module's root package and package task, and no SQLite
// driver: callers that want one hand in its dialector.
package storage
