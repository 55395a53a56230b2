// Package task decides what may happen to a task. It is a state machine without
// I/O and without a clock: an event and the time go in; the changed state, effects
// and the next step come out. It keeps the rules D3 to D15 and D17 of the durable
// path, as far as they say what may happen: the code of each has its number. Which
// rows are locked, leased and deleted (D8's leases, D16) is storage's.
//
// # The three parts
//
// [State] is a snapshot of a task: its row, its attempts, its polling, and its wait
// for a slot. [State.Apply] is the only function that changes it. [State.Advance]
// returns the next [Step].
//
// Storage loads the state under the lock of the task's row, applies events, and
// stores what differs, in one transaction. The workflow run asks for the next step,
// takes it, and asks again. It remembers only the number of the last attempt that it
// began, so it can be lost at any moment. Operators read the same answer: what the
// task waits for, until when, and which commands apply ([State.Actions]).
//
// Read state.go and event.go first, then advance.go with end.go, then the file of
// the part in question: submit.go, part.go, wait.go, park.go, wish.go. Each race and
// crash point is a scenario in testdata, named for its rule.
//
// # States
//
// The statuses of a task, as its client sees them:
//
//	pending ──► processing ──► completed            Mirrored
//	   │            │
//	   └────────────┴────────► failed, cancelled    EndDue, Mirrored
//
// A task is processing once a vendor has taken it, or from the intent of a
// synchronous call on. Modal parameters make it pending again. Each end goes through
// one function, with its ledger entry.
//
// The states of an attempt, which is one submission to one channel:
//
//	intent     stored before the vendor is called
//	accepted   the vendor's id is stored, and the channel polls for the job
//	rejected   the vendor provably has no job
//	unknown    the vendor may have a job: the answer was lost
//	abandoned  the task does not wait for it any more; its job may run on, and has its slot
//	ended      its outcome is stored, it was stopped, its slot's time is over, or the
//	           next attempt goes on with it (D15)
//
//	intent ────► accepted, rejected, unknown; ended by a synchronous answer
//	unknown ───► accepted    the job was found, or its sender reports late
//	unknown ───► intent      two lookups found no job: sent again under the same name
//	unknown ───► rejected    two lookups confirmed a refusal
//	rejected ──► accepted    its sender reports a job late, and no attempt followed
//	accepted ──► ended
//	intent, unknown, accepted ──► abandoned ──► ended    at the end of the task, or by an
//	                                                     operator's retry or reroute
//	rejected, ended ──► abandoned    a job is reported that the task does not wait for
//
// The intent is stored before the vendor is called, the vendor's id after. A crash
// between the two leaves the attempt unknown. Where the vendor can be asked by our
// own id, the job is looked up. Where it cannot, nothing is sent again without an
// operator (D6).
//
// # A lost answer, a cancel, and the end of the job
//
// A client's cancel and an operator's fail are treated alike here. What happens
// depends on which comes first:
//
//   - The answer is lost or the worker dies, and nothing else comes. The attempt is
//     unknown. It is looked up, waits for an operator, or fails after 60 s, by vendor
//     and model (d3_sender_died, d6_park_and_look_again, d6_given_up_after_the_deadline,
//     d6_sync_unknown_fails).
//   - Cancel while the attempt is an intent. It is noted. The report of the call, or
//     the stored end of the call, ends the task (d5_cancel_waits_for_the_report,
//     d5_fail_waits_for_the_report, d5_failed_then_answer_lost).
//   - Cancel once the attempt is unknown. The task ends at once, though a sender that
//     was taken for lost may still be in its call. A job that turns up later is
//     recorded and stopped where that can be (d5_answer_lost_then_failed,
//     d5_sync_answer_after_the_end).
//   - Cancel once the job was found. The vendor is asked to stop it, then the task ends
//     (d5_answer_lost_found_then_cancelled).
//   - Cancel once the job has succeeded, before its files are copied. The cancel wins,
//     and the files are swept (d5_answer_lost_job_finished_then_cancelled).
//   - Cancel after the end. It is refused (d13_end_before_cancel).
//   - The job ends after its task. The outcome and the vendor's charge are recorded,
//     the files swept, and nothing else changes (d5_answer_after_the_end).
//
// # What a task waits for
//
// RetryAt is the time before which no step begins. A step that a person may have to
// mend also parks the task: ParkedAt and ParkReason make it visible as stuck, the
// step is tried again by itself, and the task fails at the end of the parking (D12).
// A task is queued while no channel has a slot for its next attempt (D7). Time parked
// or queued moves the deadline; time parked for an unknown submission does not move
// the time at which that is given up (D6). So each wait has an end: that of the
// deadline, the parking, the queue, the modal call, or the vendor call.
//
// # Who sends which event
//
// The run sends [Asked] for the next step and [StepEnded] after it. What a step
// achieved comes as an event of its own. Pollers report what vendors say. The API and
// operators record wishes such as [CancelRequested] and [FailRequested]; workers act
// on them. Time alone ends no task: once an end is due, the next step is [Settle],
// which applies [EndDue], which checks again under the lock.
//
// # What always holds
//
//   - A task ends once, with one post or one void, and its end never changes.
//   - A task does not complete after a cancel was accepted.
//   - An attempt follows only one that was rejected, has ended, or was given up by an
//     operator: no vendor gets a second job without proof.
//   - While an attempt or a part is an intent, the task does not end before the stored
//     end of its call (D5).
//   - Late and repeated events of steps and pollers change nothing. An event that is
//     refused changes nothing.
//   - Each open task has a next step, each sleep an end, and no step is answered twice
//     without a pause.
//
// The package may import the module root and billing.
package task
