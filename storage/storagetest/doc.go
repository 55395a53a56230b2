// Package storagetest is the conformance suite of storage: what every method
// promises, on whatever database it is opened. PostgreSQL runs it in storage,
// SQLite in the standalone module. RunPath is the part of it that is about the
// durable path and no money, for the double that the activities' tests rest on.
// It imports root and storage.
package storagetest
