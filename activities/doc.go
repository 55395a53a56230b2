// Package activities holds the side effects of the durable path, one a method: it asks vendors,
// mirrors files, ends tasks, delivers callbacks, polls for channels, works through due wakes, and
// sends events to endpoints.
//
// Each activity may run twice, may run late, and may run alongside a forgotten copy of itself. So
// an activity decides nothing: package task decides what may happen to a task, under the lock of
// its row. The activity does its one thing and stores the result by Store.Change. The same
// transaction answers the question for the next step, so the run never acts on an old snapshot.
//
// Arguments and results hold only ids and facts. A prompt, a link or a secret never enters a
// history.
//
// The package imports no adapter; docs/architecture.md lists what it may import. It declares what
// it needs of other packages as small interfaces.
package activities
