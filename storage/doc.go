// Package storage is the gateway's database: accounts, keys, the ledger and who
// changed them, tasks and their story, what waits to be polled, and what is still
// to be sent to webhooks.
//
// The database decides and everything else only drives. Each decision of the
// durable path is one conditional statement, whose method tells who won; so
// callers may repeat any call, die between two of them, or race each other.
// Whatever writes to a task's story locks the task's row first, and money
// moves key first, account last, so that the busiest row is locked shortest
// and no two transactions wait for each other.
//
// Times go by the database's clock, whichever process stores or compares them
// (Store.Now); connections to a PostgreSQL server that has become read-only are
// given up.
//
// A table's columns stand in two places: its migrations and the fields of its
// row's struct, from which follow what statements name, send and read (columns).
// Plain rows are made, read and changed by GORM's own calls. SQL is written out
// where one statement decides something, and for the reads made most.
//
// PostgreSQL and SQLite run the same SQL, but for row locks (SQLite has a
// single writer), for lists that are passed as JSON, and for Submit and TakeRates,
// which on PostgreSQL are one statement and one round trip (ADR 17, ADR 32). What
// limits a hold is counted in the rows that it writes anyway (ADR 30).
//
// GORM does not leave this package: row structs are private and domain types
// carry no tags. It imports the module's root package only, and no SQLite
// driver: callers that want one hand in its dialector.
package storage
