// Package durable tests the durable path on a real Temporal server, over
// doubles of everything else: what the skipping clock of the workflows' own
// tests cannot show, such as queues that are full or that nobody serves, and
// runs that block or panic until they are replaced.
//
// It also replays the histories in workflows/testdata, and records them with -update.
package durable
