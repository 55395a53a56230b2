// Package activitytest holds doubles of all that activities reach out to: a
// store that keeps a task's story in memory by the rules of the real one (it
// passes the part of the storage suite that is about the durable path), a
// vendor that can be scripted, a bucket, a receiver of callbacks, and an
// engine that notes what it is told. With them the real activities run
// without a process beside the test.
//
// Prompts, links and keys in them carry the word of Secret, so that a test
// can prove that nothing of the kind leaks into a history.
//
// It imports the root package, activities, channel and the providers' interface. Only tests and programs that
// serve tests may import it.
package activitytest
