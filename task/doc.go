// Package task decides what may happen to a task. It is a state machine without I/O and without a
// clock: an event and the current time go in; the changed state, a list of effects and the next
// step come out. The package implements the rules D3 to D15, D17 and D21 as far as they say what
// may happen. A comment in the code names the rule that it implements, and docs/architecture.md
// lists all rules with their functions. Storage decides which rows are locked, leased and deleted
// (D16, and the leases of D8).
//
// # The three parts
//
// [State] is a snapshot of a task: its row, its attempts, their polling, and its wait for a
// slot. [State.Apply] applies an event. Only Apply changes a state, and [State.Begin] for a new
// task. [State.Advance] returns the next [Step].
//
// Storage locks the task's row, loads the state, applies events, and writes what changed, all
// in one transaction. The workflow run asks for the next step, takes it, and asks again. The
// run decides nothing, so it may be lost at any moment. Operators read the same answer that
// the run gets: what the task waits for, until when, and which commands apply
// ([State.Actions]). Package task/story turns that answer into sentences.
//
// A run also remembers what it has seen of its task. That memory repairs the row if the
// database loses its last commits: see memory.go.
//
// Read state.go and event.go first, then advance.go with end.go, then the file that you need:
// submit.go, source.go, wait.go, park.go, command.go, memory.go or restore.go. Each race and
// each crash point is a scenario in testdata, named after its rule.
//
// # States
//
// A client sees these statuses of a task:
//
//	pending ──► processing ──► completed            Mirrored
//	   │            │
//	   └────────────┴────────► failed, cancelled    EndDue, Mirrored, ModelRetired, Asked
//
// A task is processing once a vendor has accepted it. A synchronous vendor answers only with the
// outcome, so with such a vendor the task is processing as soon as the intent of its attempt is
// stored. Some vendors ask the client for more parameters before they begin (modal parameters,
// D15). Once the client has given them, the task is pending again. All three ends go through one
// function, which also makes the ledger entry. Asked ends a task only if the run saw that end
// earlier and the row has lost it.
//
// An attempt is one submission to one channel. It has these states:
//
//	intent     stored before the vendor is called
//	accepted   the vendor's id is stored, and the channel polls for the job
//	rejected   it is proven that the vendor has no job
//	unknown    the answer was lost, and the vendor may have a job
//	abandoned  the task no longer waits for it; its job may run on, and keeps its slot
//	ended      the outcome is stored; or the job was stopped; or the time of its slot is over;
//	           or a late report says that there is no job; or the next attempt continues the
//	           same job (D15)
//
//	intent ────► accepted, rejected, unknown
//	unknown ───► accepted    the job was found, or its sender reports late
//	unknown ───► intent      two lookups found no job, and it is sent again under the same name;
//	                         or the row lacked a later sending (memory.go)
//	unknown ───► rejected    two lookups confirmed a refusal, or its sender reports one late
//	unknown ───► ended       the outcome of a synchronous call is found, or reported late
//	rejected ──► accepted    its sender reports a job late, and no attempt followed
//	accepted ──► ended
//	intent, unknown, accepted ──► abandoned    the task ended; or an operator ordered a retry
//	                                           or a reroute; or the row lacked the attempt that
//	                                           followed (memory.go)
//	rejected, ended ──► abandoned    the vendor reports a job that the task does not wait for
//	abandoned ──► ended      the job ended or was stopped, the time of its slot is over, or a
//	                         late report says that there is no job
//
// A synchronous vendor answers with the outcome. Its attempt therefore goes from intent or unknown
// to ended directly, and is never accepted.
//
// The intent is stored before the vendor is called, and the vendor's id after the call. A
// crash between the two leaves the attempt unknown. The intent also stores the time by which the
// call must be over (CallEnds); below, that time is called the stored end of the call.
//
// # A lost answer
//
// The answer may be lost, or the worker may die after the intent. If no cancel comes, what follows
// depends on the vendor and on the model:
//
//	the vendor can be asked     Look the job up until it is found. If two lookups find none,
//	by our id (Route.Find)      send the attempt again. While the vendor is out of reach the
//	                            task is parked, with growing pauses between the lookups
//	                            (d3_sender_died, d6_park_and_look_again,
//	                            d4_absent_twice_then_resent)
//	it cannot, and OnUnknown    Park. An operator finds out what happened, then retries the
//	is park                     task or fails it (d6_operator_gives_up_the_attempt)
//	it cannot, and OnUnknown    Fail the task after 60 s, or at the deadline if that is earlier. If
//	is fail                     the sender was lost, its call must be over first
//	                            (d6_sync_unknown_fails)
//
// In the first two cases the task fails one hour after the deadline at the latest
// (d6_given_up_after_the_deadline). If the vendor cannot be asked, nothing is sent again unless an
// operator says so (D6).
//
// The sender of a synchronous call stores the files in our bucket as they arrive. If the sender
// dies, the repeated Submit searches the bucket. If that search finds nothing, the task waits
// until the stored end of the call, and a Lookup searches once more. Complete files count as the
// answer (d6_sync_sender_lost_left_its_files, d6_sync_sender_lost_left_nothing). If the submission
// takes several calls, the Lookup also accepts the files of some of them
// (d6_sync_sender_lost_left_some_files).
//
// # A restored database
//
// A restored row may lack attempts that were made after the backup; the event [Restored] marks
// it. From then on nothing is sent for the task until a job is found, until the run's memory shows
// what came after the backup, or until an operator orders a retry or a reroute: see restore.go
// (d17_restored_before_the_first_attempt, d17_restored_while_unknown).
//
// # A database that lost its last commits
//
// A database does not announce that it lost commits, for example in a failover to a replica that
// lagged. Therefore each report of a vendor's answer carries the identity of its attempt, and each
// [Asked] of a run carries what the run has seen. The row adopts what it lacks: see memory.go
// (d5_lapse_answer_without_its_attempt, d5_lapse_run_knows_the_job, d13_lapse_run_saw_the_end).
//
// # A cancel
//
// Until the task ends, a client's cancel and an operator's fail have the same effect. What that
// effect is depends on how far the attempt has come:
//
//   - Intent: the call may be under way. The cancel is noted. The report of the call, or the
//     stored end of the call, ends the task (d5_cancel_waits_for_the_report,
//     d5_fail_waits_for_the_report, d5_failed_then_answer_lost,
//     d5_sender_died_then_cancelled).
//   - Unknown: the task ends at once, although a sender that counts as lost may still be in its
//     call (d5_answer_lost_then_failed, d5_cancelled_between_lookups).
//   - Accepted, or found by a lookup: the vendor is asked to stop the job, if it can (CanStop).
//     Then the task ends, whether or not the job was stopped
//     (d5_answer_lost_found_then_cancelled).
//   - The job has succeeded, and its files are not copied yet: the cancel wins, and the files
//     are swept (d5_answer_lost_job_finished_then_cancelled).
//   - The task has ended: the cancel is refused (d13_end_before_cancel).
//
// # A job that runs on after its task
//
// Such a job changes neither the end of the task nor the money. What is recorded of it depends
// on whether its id is known:
//
//   - The id is known, and the job is not proven to be stopped: the attempt is abandoned, and the
//     channel polls for it until SlotUntil, the time at which its slot is freed at the latest. If
//     the job ends before that, its outcome and the vendor's charge are recorded, and its files are
//     swept.
//   - A slow sender, or one that counted as lost, reports the job after the end of the task: the
//     id is recorded, the vendor is asked to stop the job if it can, and the rest is as above
//     (d5_answer_after_the_end, d5_answer_after_the_end_unstoppable). A synchronous answer is an
//     outcome, and is recorded (d5_sync_answer_after_the_end).
//   - The id is not known: no lookup is made after the end. The attempt keeps its slot until
//     SlotUntil. The vendor's charge is not recorded (d5_sender_died_then_cancelled).
//
// # A model that is retired
//
// A vendor may say at a submit that it has no such model. The next attempt then takes another
// route at once. If no other route is left, the refusal is for good, and the task fails
// (model_retired_at_the_vendor).
//
// For an hour no job goes to that route of that channel: the channel's row records until when the
// model is retired there. If all routes of a task are retired, [ModelRetired] ends it without an
// attempt (model_retired_before_the_attempt).
//
// # What a task waits for
//
// A task has at most one wait ([mediagate.Wait]). A wait has the time of the next try and, unless
// the list says otherwise, an end at which the task fails:
//
//	source   the task uses a file of another task, its source, which has not ended (D21). The
//	         source ends by itself, so this wait needs no end of its own
//	pause    a vendor refused for the moment, or a step achieved nothing. The next try comes
//	         later. This wait has no end of its own: the deadline runs on
//	parked   a step is stuck, and a person may have to help. The step is tried again by itself,
//	         and the task fails when the parking ends (D12)
//	slot     no channel has a slot for the next attempt (D7)
//	modal    the client has not given its parameters yet (D15)
//	unknown  the vendor's answer was lost (D6)
//	vendor   the deadline has passed, and the vendor is asked one last time (D10)
//
// While the vendor works and the deadline has not passed, the task has no wait. A task shows as
// stuck while its wait has a [mediagate.ParkReason].
//
// The time that a task is stuck or queued, or waits for its client or a source, does not count
// against the deadline: when the wait is over, the deadline moves by the length of the wait. While
// the wait lasts, WaitsUntil returns the deadline as moved so far (D10). If one wait follows
// another, the earlier of the two ends counts. For example, a task that is parked at noon for one
// day, and then queued because all channels refuse it, fails at the next noon. [change.wait] lists
// the waits that get a new beginning and a new end.
//
// A call under way is not a wait. While the attempt is an intent, the task can end only by the
// report of the call, or after the stored end of the call (D5).
//
// # Who sends which event
//
// The run sends [Asked] to get its next step. The activity that took the step sends [StepEnded]
// and asks again; if the activity failed, the run does so. What the step achieved is an event of
// its own, sent before [StepEnded]. Pollers report what vendors say. The API and operators record
// commands such as [CancelRequested] and [FailRequested], and workers act on them. The passing of
// time alone ends no task. Once an end is due, the next step is [Settle]. That step applies
// [EndDue], which checks under the lock that the end is still due.
//
// # What always holds
//
//   - A task ends once, with one post or one void, and its end never changes.
//   - A task does not complete after a cancel was accepted.
//   - An attempt follows another only if the earlier one was rejected, has ended, or was given up
//     by an operator's command. So a second job is made only with a proof that the first does not
//     exist or is over, or on an operator's order. If a report or the run's memory shows that a
//     later attempt was made, the row adopts it, and the earlier one is abandoned.
//   - After a restore a job is made only after a job was found, after the run's memory or a report
//     showed what came after the backup, or on an operator's order (D17).
//   - While an attempt is an intent, the task does not end before the stored end of its call (D5).
//   - Late and repeated events of steps and pollers change nothing. A refused event changes
//     nothing.
//   - Each open task has a next step, each sleep has an end, and no step is returned twice without
//     a pause in between.
//
// The package may import the module root and catalog/price.
package task
