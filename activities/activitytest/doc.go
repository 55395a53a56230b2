// Package activitytest holds doubles of all that activities reach out to: a store that
// keeps tasks in memory, and leaves every decision to package task; a vendor that can
// be scripted, a bucket, a receiver of callbacks, and an engine that notes what it is
// asked for. With them the real activities run without a process beside the test.
//
// Prompts, links and keys in them carry the word of Secret, so that a test
// can prove that nothing of the kind leaks into a history.
//
// It imports the root package, activities, channel, task and the providers' interface.
// Only tests and programs that serve tests may import it.
package activitytest
