// Package storage is the gateway's database. It keeps accounts, keys and the ledger, with a record
// of who changed them; tasks and their attempts; and the rows that say what to poll, wake and
// deliver.
//
// Every decision about a task is made in a transaction of the database. A workflow asks for the
// next step and carries it out. One function moves a task on: Change applies events of package task
// under the lock of the task's row. Where many rows change at once, one statement changes them all,
// and its comment names the event that the statement stands for. EraseTask erases a task that has
// ended. Callers may repeat any call, die between two calls, or race each other.
//
// Every transaction locks rows in the same order: the task, its attempts, its await row, its
// queue rows, then the key, the account, and the wakes last. The busiest rows are locked last
// and so for the shortest time, and no two transactions wait for each other. An endpoint is
// locked before its deliveries.
//
// A client may abandon a request that waits for its task, and send it again. The client must not
// pay twice. Such a request has an idempotency record of its own, through which the repeated
// request adopts the task (adoption.go). The record is in the database because the repeated
// request may reach another process.
//
// All times come from the database's clock, whichever process stores or compares them
// (Store.Now). The store closes its connections to a PostgreSQL server that has become
// read-only.
//
// SQL is written out. The columns of a result go into the fields of a struct, in the same order.
// The struct is a domain type, if one has just these fields. Otherwise it is a private row struct,
// whose fields also give the columns their names (type columns). GORM inserts the rows of some
// tables, expands named parameters, and runs transactions.
//
// PostgreSQL and SQLite run the same SQL, with a few exceptions. SQLite has a single writer and
// takes no row locks. Times, and lists that are passed as JSON, are written in each dialect. A
// submit is one statement on PostgreSQL and several statements on SQLite.
//
// The limits of a hold are counted in the rows that the hold writes anyway (ADR 13).
//
// GORM stays inside this package: row structs are private, and domain types carry no tags.
// The package imports the module's root package and package task, and no SQLite driver:
// callers that want SQLite pass its dialector.
package storage
