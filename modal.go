package mediagate

import (
	"encoding/json"
	"time"
)

// OperationModal is what a route's operation becomes for the attempt that takes
// the client's modal parameters to the account whose job waits for them.
const OperationModal = "modal"

// ModalState is how far a task has come whose vendor wants to hear more from
// the client before it goes on (D15).
type ModalState string

// MODAL → SUBMITTED | EXPIRED, once a task. Which of the two is decided by
// whichever UPDATE finds the first.
const (
	ModalNone      ModalState = ""
	ModalWaiting   ModalState = "MODAL"     // for the client, until Modal.Until
	ModalSubmitted ModalState = "SUBMITTED" // the client has spoken: the attempts after Modal.N take it to the vendor
	ModalExpired   ModalState = "EXPIRED"   // nobody spoke: the task fails
)

// Modal is a task's wait for parameters that its client has yet to give.
type Modal struct {
	State ModalState
	N     int       // the attempt whose job waits at the vendor
	Until time.Time // by the database's clock
	// Input is what the client then said: the canonical request of the modal
	// call. It is in no history.
	Input json.RawMessage
}

// Resumes reports that attempt n of the task takes the modal parameters to the
// vendor, instead of asking for a new job.
func (m Modal) Resumes(n int) bool { return m.State == ModalSubmitted && n > m.N }

// NoModal is how a task ends whose client said nothing in time.
func NoModal() *Failure {
	return &Failure{Code: CodeModalExpired, Message: "no modal parameters came in time"}
}

// ModalCall is a client's modal call: what it says, and the idempotency record
// when it sent a key.
type ModalCall struct {
	AccountID      string
	TaskID         string
	Input          json.RawMessage
	IdempotencyKey string
	Path           string
	BodySHA256     [32]byte
}
