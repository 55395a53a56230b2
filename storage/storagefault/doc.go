// Package storagefault is package storage on a SQLite database in memory, for tests of the packages
// that use storage. A test can make each call fail before it takes effect, or lose its answer after
// that, and can make the database lose its last seconds.
//
// The test names a call by the method of storage.Store. The call may fail when it begins a
// transaction, or a statement outside of one. Its answer may get lost when the transaction or the
// statement has been committed. So a method that reads before it writes may fail twice.
//
// Only tests and programs that serve tests may import the package.
package storagefault
