// Package sqlite opens the gateway's database in a SQLite file, for the standalone program and for
// tests.
//
// The package gives storage a GORM dialector over a pure-Go driver, and translates the driver's
// errors. It uses the driver that the embedded Temporal server registers as "sqlite", since a
// second driver of that name would panic at start. The dialector has a pool that sends writes to
// one connection and reads to the others: SQLite has one writer, and in WAL mode readers never wait
// for it.
package sqlite
