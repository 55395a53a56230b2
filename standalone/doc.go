// Command mediagate-standalone is the whole gateway in one process and one data folder: the
// product's API and workers, an embedded Temporal server with its web interface, SQLite, an S3
// server, and the sandbox in place of the vendors.
//
// With -infra it starts only the named servers, so that "mediagate api" and "mediagate worker"
// can run beside them.
//
// The package only connects these parts. The behaviour of the product is in the product's
// module.
package main
