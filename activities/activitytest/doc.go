// Package activitytest holds what tests put around activities: the real store on a database in
// memory, and doubles of everything else. The doubles are a vendor that can be scripted, a bucket, a
// receiver of callbacks, and an engine that notes what it is asked for. With them the real
// activities run without another process.
//
// Their prompts, links and keys contain [Secret], so that a test can prove that none of them
// leaks into a history.
//
// The package imports the root package, activities, channel, task and the providers' interface.
// Only tests, and programs that serve tests, may import it.
package activitytest
