// Package temporalserver runs a whole Temporal service inside this process:
// all four of its roles, over one SQLite file or over PostgreSQL.
//
// It owns the service's configuration, the creation of its schema, and the
// namespace with its retention and search attributes. The service survives
// kill -9: it is started again on the same file or databases and goes on.
//
// It knows nothing of the product but the names of its search attributes, and
// must not import anything that starts workflows or workers.
package temporalserver
