// Package durable tests the durable path on a real Temporal server. Everything else is a double.
// It tests behaviour that the skipping clock of the workflows' own tests cannot show, such as
// queues that are full or have no worker, and runs that block or panic until they are replaced.
//
// It also replays the histories in workflows/testdata, and records them with -update.
package durable
