// Package activities holds the side effects of the durable path, one a
// method: asking a vendor, mirroring a file, settling the money, delivering a
// callback, tending a channel, reconciling rows with runs.
//
// Each activity may run twice, late, or beside a forgotten copy of itself.
// The database decides who was first; an activity reads the task's story,
// does its one thing, and returns the story as it then stands, so that the
// workflow never acts on a stale belief. Arguments and results hold ids and
// facts only: no prompt, no link, no secret ever enters a history.
//
// It imports the root package, billing, channel, failpoint and the providers'
// interface, no adapter. What it needs of other packages it declares here as
// small interfaces.
package activities
