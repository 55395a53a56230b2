// Package workflows drives tasks: it takes the steps that the database decides on. It owns the
// names that are visible outside: workflow ids, task queues, signals, and search attributes.
//
// # The loop
//
// A run of [Generate] asks for the next step, takes it, and asks again. The question is a local
// activity, or part of the transaction that ended the step before. In the second case the answer
// is the result of that step's activity. The first run of a task normally begins with a step that
// its start carries. If a signal came before that step, the run asks first.
//
// The run decides nothing. Package task decides what may happen to a task, under the lock of the
// task's row. The run only remembers what it has seen of the last attempt, and of a cancel or
// fail; the step that it is at; and what it has shown in lists.
//
// A step is an activity, a sleep, or the end. A sleep is a timer. The answer says until when a
// sleep, a check or a submit may last, by the database's clock. A copy gets at least an hour.
// Questions to a vendor have their own limits, and Settle is repeated until it succeeds. An image
// costs one step: the submit also copies the file and ends the task. A video costs a submit, a
// timer, and a question after the signal, since its poller copies small files. Only a copy that
// takes long is a step of its own.
//
// # Signals
//
// The signal wake says that the row has changed. It makes the run ask, whatever the run is doing.
// The signal carries no data, so a lost, repeated or late one does no harm. An operator's signal
// from Temporal's UI, and the cancel of the run, are not in the database yet. The next question
// takes them there, under an id that the run makes, and names the step that the run was at when
// they came. The run drains all signals before each question, and neither ends nor continues as
// new before it has drained them.
//
// A signal that comes while an activity runs makes the run ask too. The answer may be to stop:
// then the run cancels the activity, and takes no other step before the activity has ended (D5).
//
// # Crashes
//
// If a worker dies, the missing heartbeat is noticed within ten seconds, and another worker
// repeats the activity. If a run is terminated, reset, or fails, only time is lost: the next run
// asks. [Wake] takes care of that. The table of wakes has the time by which each run must have
// asked; the singleton starts, signals and replaces runs that are late (D2). Each worker keeps
// the singletons running with a [Keeper].
//
// If this build does not know a step, the workflow task fails until a newer worker takes it. A
// change of this package must not break the replay of runs that are under way: the tests replay
// recorded histories.
//
// The package does no I/O of its own except calls to Temporal. It uses the names and the argument
// types of activities.
package workflows
