package mediagate

import "time"

// Doubted is a task of which a person has to decide after a restore: its row may lack
// attempts, or a run of it is all that is left (D17).
type Doubted struct {
	TaskID    string
	AccountID string
	KeyID     string
	Model     string
	Hold      Micros
	State     string     // the task's status; of a run without a row, the run's
	Reason    ParkReason // why it is parked
	At        time.Time  // of the submit, or of the start of the run
}
