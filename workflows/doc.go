// Package workflows holds the decisions of the durable path: what a task does
// next, given its story. It owns the names that the outside relies on:
// workflow ids, task queues, signals, search attributes.
//
// Workflows keep no state that matters. Each step is an activity that reads
// the database, does one thing, and returns the story as it then stands; a
// run that was reset, terminated or replaced begins with the story and goes
// on from there. Nothing here does I/O, and nothing here knows a vendor, a
// prompt or a link.
//
// # A run of Generate
//
// The run looks at the story and takes the step that it calls for, until the
// task has ended. The states below are the story's: those of the newest
// attempt, and what is stored of its outcome. Whatever moves them is a row in
// the database, so that a run can begin in any of them.
//
//	(no attempt) ──SubmitJob──> intent ───────────┐ deadline passed, or the worker lost:
//	     ^                        │               │ its call may go on, then MarkLost
//	     │            ┌───────────┼───────────┐   │
//	     │            v           v           v   v
//	next attempt── rejected    accepted      unknown ──found by our id──> accepted
//	(afterRejection)  │           │           │  └──proven absent──> intent, same id
//	                  │         await         │
//	                  │           │           ├── cannot be asked: fails (resolve)
//	  refused for good│           │ upstream  └── or parks, looks again, gives up
//	                  │           v
//	                  │    outcome stored ──success──> MirrorResult ──> completed
//	                  │           │ failure             │ which could not settle:
//	                  v           v                     v mirrored
//	                failed      failed    cancelled   completed
//	                  └───────────┴── Settle ─┴─────────┘
//	                                     │
//	                     DeliverWebhook (a child), SweepResults
//
// From every state:
//   - a cancel in the row leads to Settle as cancelled. It comes as the signal
//     cancel, or as the cancel of the run, which is put into the row first;
//   - an operator's fail leads to Settle as failed;
//   - the deadline leads to one last question to the vendor, and to failed;
//   - what a step could not do parks the task: it waits for an operator's
//     retry, for a wake, for its own next try, or for the end of its patience,
//     which is failed. A step that succeeds ends the parking.
//
// What a run knows besides the story stands in small parts, each in its file:
// [clock], by how much the database's clock is ahead; [inbox], what came from
// outside and is not carried out yet; [lostSubmission], since when the fate of
// an attempt is open; [display], what operators were shown.
//
// Recorded histories are replayed by the tests: a run that began with older
// code goes on with this. What such a run does otherwise hangs on the generation
// that its first story tells.
//
// It imports the root package and, for names and argument types, activities.
package workflows
