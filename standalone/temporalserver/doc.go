// Package temporalserver runs a whole Temporal service inside this process: all four of its
// roles, over one SQLite file or over PostgreSQL.
//
// It owns the configuration of the service, the creation of its schema, and the namespace with
// its retention and search attributes. The service survives kill -9: after a new start on the
// same file or databases, it continues.
//
// It uses the product's names of search attributes and its retention, and knows nothing else of
// the product. It must not start workflows or workers.
package temporalserver
