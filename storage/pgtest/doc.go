// Package pgtest gives each test a PostgreSQL database of its own, cloned from
// one that is migrated already.
//
// The server is the one that MEDIAGATE_TEST_POSTGRES names (the URL of a
// superuser), or else a private cluster that lives as long as the test binary:
// a package that uses New runs its tests through Main. Programs that are no
// tests use Start. NewPooler puts a PgBouncer before either.
//
// It imports storage, for its migrations, and freeport; production code must not import it.
package pgtest
