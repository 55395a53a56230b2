// Command mediagate-standalone is the whole gateway in one process and one
// data folder: the API and the workers of the product, and embedded a real
// Temporal server with its web interface, SQLite, an S3 server, and the
// sandbox in place of the vendors.
//
// With -infra it starts only the servers that are named, for running
// "mediagate api" and "mediagate worker" beside them.
//
// It owns wiring only; what the product does is in the product's module.
package main
