// Package task decides what may happen to a task. It is a state machine without
// I/O and without a clock: events go in, the changed state, effects and the next
// step come out. Every rule of the durable path that says what may happen is a line
// here and nowhere else, with its number (D3 to D17); the scenarios in testdata tell
// each race and crash point as a story.
//
// # The three parts
//
// [State] is a task as decisions see it: its row, its attempts, and what waits for
// them. [State.Apply] is the only place where it changes. [State.Advance] says what
// comes next. Storage loads the state under the lock of the task's row, applies
// events, and stores what differs, in one transaction. The workflow asks for the
// next step, takes it, and asks again: it decides nothing and remembers nothing, so
// that it can be lost at any moment. An operator reads the same answer: what the
// task waits for, until when, and which commands apply.
//
// # States
//
// Of a task, as its client sees it:
//
//	pending ──► processing ──► completed   by Mirrored
//	   │            │
//	   └────────────┴────────► failed, cancelled   by EndDue
//
// A task is processing once a vendor has taken it, or while a synchronous call
// lasts. Modal parameters make it pending again. It ends once, in one function,
// with its money.
//
// Of an attempt, which is one submission to one channel:
//
//	            ┌────────────► rejected    the vendor provably has no job
//	            │
//	intent ─────┼────────────► accepted ─► ended   an outcome is stored
//	   ▲        │                 ▲  │
//	   │        └──► unknown ─────┘  └───► abandoned   nobody waits for it any more:
//	   └────────────────┘ twice absent     its job may run on, until its end is seen
//
// The intent is stored before the vendor is called, its id after. Between the two
// lies the one moment at which a crash leaves the truth with the vendor: the attempt
// is then unknown. Where the vendor can be asked by our own id it is looked up; what
// it denies twice is sent again under the same id. Where it cannot be asked, nothing
// is sent again without an operator.
//
// # What a task waits for
//
// A step that cannot be taken now sets RetryAt. One that a person may have to mend
// parks the task as well: ParkedAt and ParkReason make that visible, the step is
// tried again by itself, and the parking ends the task when nobody mends it. A task
// without a slot is queued. Time parked or queued does not count for the deadline.
// So each wait has an end: the deadline, the parking's, the queue's, or that of a
// call whose answer still counts.
//
// # Who tells what
//
// The run's question is [Asked], and [StepEnded] how its step ended. Steps tell what
// they achieved by events of their own, pollers what vendors say. Clients and
// operators only state wishes: [CancelRequested], [FailRequested] and their like
// leave a fact, and workers act on it. Time alone ends nothing: where it makes an end
// due, the next step is [Settle], which applies [EndDue], which looks once more.
//
// # What always holds
//
//   - A task ends once, with one post or one void, and its end never changes.
//   - A cancel that was accepted is never followed by a completion.
//   - An attempt is made only after the one before was rejected, has ended, or was
//     given up by an operator: no vendor gets a second job without proof.
//   - While a call may be under way whose answer counts, nothing ends the task.
//   - Late and repeated events change nothing. An event that asks for what must not
//     be is refused, and changes nothing either.
//   - Each state has a next step, each sleep an end, and no step is answered twice
//     without a pause.
//
// The package may import the module root and billing.
package task
