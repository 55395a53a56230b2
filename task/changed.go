package task

import "time"

// Changed is what came of a task's events: the task after them, its next step, and what
// is to be done outside of the database.
type Changed struct {
	State   State
	Step    Step
	Effects Effects
	At      time.Time // by the database's clock
}
