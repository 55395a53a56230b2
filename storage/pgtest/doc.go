// Package pgtest gives each test a PostgreSQL database of its own, cloned from one that is migrated
// already.
//
// The environment variable MEDIAGATE_TEST_POSTGRES names the server, by the URL of a superuser.
// Without the variable, pgtest starts a private cluster that lives as long as the test binary. A
// package that uses New runs its tests through Main. Programs that are no tests use Start.
// NewPooler puts a PgBouncer before the server.
//
// The package imports storage, for its migrations, and freeport. Production code must not import
// pgtest.
package pgtest
