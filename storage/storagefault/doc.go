// Package storagefault is package storage on a SQLite database in memory, for the tests
// of what works with it: each of its calls may be made to fail before it takes effect,
// or to lose its answer after that, and the database may lose its last seconds.
//
// A call is known by the method of storage.Store that makes it. It may fail when it
// begins a transaction, or a statement outside of one, and its answer may get lost
// when the transaction, or what a statement wrote, was committed. So a method that reads
// before it writes may fail twice.
//
// Only tests and programs that serve tests may import it.
package storagefault
