// Package activities holds the side effects of the durable path, one a
// method: asking a vendor, mirroring a file, ending a task, delivering a
// callback, tending a channel, working off wakes, telling endpoints of events.
//
// Each activity may run twice, late, or beside a forgotten copy of itself. What may
// happen to a task is decided by package task, under the lock of its row: an activity
// does its one thing, and stores what came of it by Store.Change, together with the
// question for the next step. So its run never acts on an old snapshot. Arguments and
// results hold ids and facts only: no prompt, no link, no secret ever enters a history.
//
// It imports no adapter; docs/architecture.md lists what it may import. What it needs of
// other packages it declares here as small interfaces.
package activities
