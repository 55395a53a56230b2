// Package e2e holds tests only. They start the built programs as processes, and kill them, stop
// them and cut their connections while tasks are in progress.
//
// The tests run two installations. "standalone" is bin/mediagate-standalone alone. "production"
// is bin/mediagate api and bin/mediagate worker over PostgreSQL, with Temporal, S3 and the
// sandbox as further processes. Some tests start several of each. Whatever happens, every test
// ends with the same checks (see world.verify): every acknowledged task has ended, the vendor
// has one job for it, the money is right, the webhook came with one id, and nothing is left over
// in the bucket or in Temporal.
//
// TestCrashChains plays chains as a user makes them: requests that use the results of earlier
// ones. It compares their files with the vendor's, byte by byte.
//
// TestChaos plays a plan that a seed determines: batches of tasks, and faults of every part of
// an installation. It is short here, and long with make chaos. TestTemporalUI performs in a
// browser the tasks of an operator in Temporal's web interface.
//
// The programs are those in bin/, which make keeps up to date, or those in the folder
// MEDIAGATE_TEST_BIN. MEDIAGATE_VERIFY=1 adds the failpoints and the scenarios that take too
// long for every run.
//
// The package imports only the product's names (failpoints, test servers), never its wiring, so
// that it tests the programs that a user starts.
package e2e
