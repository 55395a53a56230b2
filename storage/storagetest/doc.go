// Package storagetest is the conformance suite of storage: what every method
// promises, on whatever database it is opened. PostgreSQL runs it in storage,
// SQLite in the standalone module. It imports root and storage.
package storagetest
