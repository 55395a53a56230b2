// Package readme holds the documents to their word: the commands of the
// README run as they stand against the built program, clients that nobody
// here wrote understand what it sends and stores, and what the documents name
// exists.
//
// It holds tests and what they share. It starts the binaries of "make build"
// and asks the product's packages only for the names that documents repeat.
package readme
