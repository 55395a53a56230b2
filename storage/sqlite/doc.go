// Package sqlite opens the gateway's database in a SQLite file, for the
// standalone program and for tests.
//
// It gives storage a GORM dialector over the pure-Go driver that the embedded
// Temporal server registers as "sqlite" (a second driver of that name would
// panic at start), with the driver's errors translated, and a pool that sends
// what writes to one connection and what only reads to others: SQLite has one
// writer, and in WAL mode readers never wait for it.
package sqlite
