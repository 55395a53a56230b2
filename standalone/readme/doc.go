// Package readme checks that the documents are true. The commands of the README run as written
// against the built program. Clients from elsewhere understand what the program sends and
// stores. The names in the documents exist.
//
// It holds tests and their shared code. It starts the binaries of "make build" and uses the
// product's packages only for the names that documents repeat.
package readme
