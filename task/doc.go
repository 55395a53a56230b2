// Package task decides what may happen to a task. It is a state machine without
// I/O and without a clock: an event and the time go in; the changed state, effects
// and the next step come out. It keeps the rules D3 to D15, D17 and D21, as far as they say
// what may happen: the code of each has its number, and docs/architecture.md lists them.
// Which rows are locked, leased and deleted (D8's leases, D16) is storage's.
//
// # The three parts
//
// [State] is a snapshot of a task: its row, its attempts, its polling, and its wait
// for a slot. [State.Apply] is the only function that changes it. [State.Advance]
// returns the next [Step].
//
// Storage loads the state under the lock of the task's row, applies events, and
// stores what differs, in one transaction. The workflow run asks for the next step,
// takes it, and asks again. It decides nothing, and can be lost at any moment. What it has
// seen of the task is the second memory, for a database that loses its last commits: see
// memory.go. Operators read the same answer: what the task waits for, until when, and which
// commands apply ([State.Actions]); package task/story puts it into words.
//
// Read state.go and event.go first, then advance.go with end.go, then the file of the part
// in question: submit.go, source.go, wait.go, park.go, command.go, memory.go, restore.go. Each race and
// crash point is a scenario in testdata, named for its rule.
//
// # States
//
// The statuses of a task, as its client sees them:
//
//	pending ──► processing ──► completed            Mirrored
//	   │            │
//	   └────────────┴────────► failed, cancelled    EndDue, Mirrored, ModelRetired, Asked
//
// A task is processing once a vendor has taken it, or from the intent of a
// synchronous call on. Modal parameters make it pending again. Each end goes through
// one function, with its ledger entry. Asked ends a task only where its run has seen that
// end before, and the row has lost it.
//
// The states of an attempt, which is one submission to one channel:
//
//	intent     stored before the vendor is called
//	accepted   the vendor's id is stored, and the channel polls for the job
//	rejected   the vendor provably has no job
//	unknown    the vendor may have a job: the answer was lost
//	abandoned  the task does not wait for it any more; its job may run on, and has its slot
//	ended      its outcome is stored, it was stopped, its slot's time is over, a late
//	           report says that there is none, or the next attempt goes on with it (D15)
//
//	intent ────► accepted, rejected, unknown
//	unknown ───► accepted    the job was found, or its sender reports late
//	unknown ───► intent      two lookups found no job: sent again under the same name
//	unknown ───► rejected    two lookups confirmed a refusal
//	rejected ──► accepted    its sender reports a job late, and no attempt followed
//	accepted ──► ended
//	intent, unknown, accepted ──► abandoned ──► ended    at the end of the task, or by an
//	                                                     operator's retry or reroute
//	rejected, ended ──► abandoned    a job is reported that the task does not wait for
//
// The answer of a synchronous vendor has the outcome: its attempt goes from intent to ended
// at once, and is never accepted.
//
// The intent is stored before the vendor is called, the vendor's id after. A crash
// between the two leaves the attempt unknown.
//
// # A lost answer
//
// The answer is lost, or the worker dies after the intent, and no cancel comes. What
// follows depends on the vendor and on the model:
//
//	can be asked by our id      Lookup, until the job is found, or absent twice and sent
//	(Route.Find)                again. While the vendor is out of reach the task is parked
//	                            and the pauses grow (d3_sender_died, d6_park_and_look_again,
//	                            d4_absent_twice_then_resent)
//	cannot, OnUnknown is park   parked: an operator finds out, then retries or fails it
//	                            (d6_operator_gives_up_the_attempt)
//	cannot, OnUnknown is fail   the task fails after 60 s, or at the deadline, but not
//	                            before the call must be over (d6_sync_unknown_fails)
//
// The first two end an hour after the deadline (d6_given_up_after_the_deadline). Where
// the vendor cannot be asked, nothing is sent again without an operator (D6).
//
// A synchronous sender stores the files in our bucket as they arrive. If it died, the
// repeated Submit searches the bucket. If nothing is there, the task waits for the stored
// end of the call, and a Lookup searches it again. Files that are whole count as the
// answer (d6_sync_sender_lost_left_its_files, d6_sync_sender_lost_left_nothing). Where
// the submission takes several calls, those files count that had come by then
// (d6_sync_sender_lost_left_some_files).
//
// # A restored database
//
// Its rows may lack attempts that were made after the backup, and [Restored] says so.
// Nothing is sent then until a job is found, or an operator orders a retry or reroute: see
// restore.go (d17_restored_before_the_first_attempt, d17_restored_while_unknown).
//
// # A database that lost its last commits
//
// Nobody announces that. So a report of a vendor's answer carries the identity of its
// attempt, and a question carries what the run has seen. The row takes over what it lacks:
// see memory.go
// (d5_lapse_answer_without_its_attempt, d5_lapse_run_knows_the_job,
// d13_lapse_run_saw_the_end).
//
// # A cancel
//
// A client's cancel and an operator's fail are treated alike here. What happens depends
// on how far the attempt is when it comes:
//
//   - Intent: the call may be under way. The cancel is noted. The report of the call, or
//     the stored end of the call, ends the task (d5_cancel_waits_for_the_report,
//     d5_fail_waits_for_the_report, d5_failed_then_answer_lost,
//     d5_sender_died_then_cancelled).
//   - Unknown: the task ends at once, though a sender that was taken for lost may still
//     be in its call (d5_answer_lost_then_failed, d5_cancelled_between_lookups).
//   - Accepted, or found by a lookup: the vendor is asked to stop the job where it can
//     (CanStop), then the task ends, whether the job was stopped or not
//     (d5_answer_lost_found_then_cancelled).
//   - The job has succeeded, and its files are not copied yet: the cancel wins, and the
//     files are swept (d5_answer_lost_job_finished_then_cancelled).
//   - The task has ended: the cancel is refused (d13_end_before_cancel).
//
// # A job that runs on after its task
//
// It changes neither the end of the task nor the money. How much is seen of it depends
// on whether its id is known:
//
//   - Known, and not proven to be stopped: the attempt is abandoned, and polled for until
//     SlotUntil. If the job ends before, its outcome and the vendor's charge are recorded,
//     and its files swept.
//   - Reported after the end, by a sender that was slow or taken for lost: the id is
//     recorded, the vendor is asked to stop the job where it can, and the rest is as
//     above (d5_answer_after_the_end, d5_answer_after_the_end_unstoppable). A synchronous
//     answer is an outcome: it is recorded (d5_sync_answer_after_the_end).
//   - Not known: no lookup is made after the end. The attempt has its slot until
//     SlotUntil. The vendor's charge is not recorded (d5_sender_died_then_cancelled).
//
// # A model that is retired
//
// A vendor may say at a submit that it has no such model. The next attempt then takes another
// route at once. If no other route is left, the refusal is for good, and the task fails
// (model_retired_at_the_vendor).
//
// For an hour no job goes to that route of that channel. The channels' rows say so. If all
// routes of a task are retired, [ModelRetired] ends it without an attempt
// (model_retired_before_the_attempt).
//
// # What a task waits for
//
// A task has at most one wait ([mediagate.Wait]), with the time of the next try and an end:
//
//	source   a task whose file this one uses has not ended (D21). It ends by itself, so
//	         that this wait has no end of its own
//	pause    a vendor refused for now, or a step achieved nothing: the next try comes
//	         later. It has no end of its own
//	parked   a step is stuck, so that a person may have to help: it is tried again by
//	         itself, and the task fails at the end of the parking (D12)
//	slot     no channel has a slot for the next attempt (D7)
//	modal    the client has yet to give parameters (D15)
//	unknown  the vendor's answer was lost (D6)
//	vendor   the deadline has passed, and the vendor is asked a last time (D10)
//
// A vendor that works before the deadline is no wait. A wait with a reason shows as stuck.
// The time that a task is stuck, queued, or waits for its client or a source moves the
// deadline, once the wait is over; until then WaitsUntil is the deadline (D10). A wait that follows another
// keeps the earlier end: a task that is parked at noon for a day, and queued since because
// all channels refuse it, fails at the next noon. [change.wait] lists the waits that begin
// anew. A call under way is no wait: while the attempt is an intent, nothing but its own
// report ends the task before the stored end of the call (D5).
//
// # Who sends which event
//
// The run sends [Asked] for the next step. The activity that took the step, or the run
// if that failed, sends [StepEnded] and asks again. What the step achieved comes before,
// as an event of its own. Pollers report what vendors say. The API and operators record
// commands such as [CancelRequested] and [FailRequested]; workers act on them. Time
// alone ends no task: once an end is due, the next step is [Settle], which applies
// [EndDue], which checks again under the lock.
//
// # What always holds
//
//   - A task ends once, with one post or one void, and its end never changes.
//   - A task does not complete after a cancel was accepted.
//   - An attempt follows only one that was rejected, has ended, or was given up by an
//     operator: no vendor gets a second job without proof that the first is none, or
//     without an operator's word.
//   - After a restore no job is made without a found one or an operator's word (D17).
//   - While an attempt is an intent, the task does not end before the stored
//     end of its call (D5).
//   - Late and repeated events of steps and pollers change nothing. An event that is
//     refused changes nothing.
//   - Each open task has a next step, each sleep an end, and no step is answered twice
//     without a pause.
//
// The package may import the module root and catalog/price.
package task
