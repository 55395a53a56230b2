// Package workflows drives tasks: it takes the steps that the database decides on. It
// owns the names that the outside relies on: workflow ids, task queues, signals, search
// attributes.
//
// # The loop
//
// A run of [Generate] asks for the next step, takes it, and asks again. The first run of a
// task begins with a step that its start carries, unless it was signalled before. The question is
// a local activity, or the transaction with which the step before ended: an activity
// returns the next step. What may happen to a task is decided by package task, under
// the lock of the task's row. The run decides nothing. It remembers what it has seen of
// the last attempt, of a cancel and of the end, the step that it is at, and what it has shown.
//
// A step is an activity, a sleep, or the end. A sleep is a timer. Every step has an end
// by itself: the answer says when, by the database's clock. An image costs a submit, which
// copies and ends the task too. A video costs a submit, a timer, and a question after the
// signal: its poller copies what is quick. Each copy that is not is a step.
//
// # Signals
//
// The signal wake has the run ask, whatever it is at: the row has changed. It carries
// nothing, so that it may be lost, repeated or late. An operator's signal from Temporal's
// UI and the cancel of the run have no row yet. They go with the next question, under an
// id of the run's, and name the step that the run was at when they came. The run drains
// all signals before each question, and neither ends nor continues as new before it has.
//
// While an activity runs, a signal makes the run ask too. The answer may be to stop. The
// activity is then cancelled, and the run takes no other step before it has ended (D5).
//
// # Crashes
//
// A worker that dies costs its activity up to ten seconds, by its heartbeat, and then
// another repeats it. A run that is terminated, reset, or fails costs nothing but time:
// the next one asks. [Wake] looks after that. The table of wakes has the time by which
// each run must have asked. Its singleton starts, signals and replaces runs that are late
// (D2), and each worker keeps the singletons running by [Keeper].
//
// A step that this build does not know fails the workflow task, until a newer worker
// takes it. Recorded histories are replayed by the tests.
//
// The package does no I/O of its own but calls to Temporal. Of activities it uses names and
// argument types.
package workflows
