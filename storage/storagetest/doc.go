// Package storagetest is the conformance suite of storage: what every method
// promises, on whatever database it is opened. PostgreSQL runs it in storage,
// SQLite in the standalone module. What an event does to a task is decided and
// tested by package task: here tasks are moved by events, machineTests hold the rows
// against the state in memory, and the rest is about what rows add to that: locks,
// isolation, claims, leases, money, erasure. It imports root, task and storage.
package storagetest
