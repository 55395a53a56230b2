// Package e2e holds tests only: the built programs, started as processes,
// killed, stopped and cut off from each other while tasks are under way.
//
// Two shapes are tested. "standalone" is bin/mediagate-standalone alone.
// "production" is bin/mediagate api and bin/mediagate worker over PostgreSQL,
// with Temporal, S3 and the sandbox as processes beside them, several of each
// where a test needs that. Whatever happened, every test ends with the same
// questions (see world.verify): has each acknowledged task ended, did the
// vendor see one job, is the money right, did the webhook come with one id, and
// is nothing left over in the bucket or in Temporal.
//
// TestCrashChains plays chains: requests that work on what earlier ones made, as a user
// makes them. Their files are compared with the vendor's, byte by byte.
//
// TestChaos plays a plan that follows from a seed: batches of tasks, and faults of every
// part of an installation. It is short here, and long by make chaos. TestTemporalUI does
// in a browser what operators do in Temporal's web interface.
//
// The programs are what is in bin/, brought up to date by make, or what
// MEDIAGATE_TEST_BIN names. MEDIAGATE_VERIFY=1 adds the failpoints and the
// scenarios that take too long for every run.
//
// It imports the product's names only (failpoints, test servers), never its
// wiring: what is tested is what a user starts.
package e2e
