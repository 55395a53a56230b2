package mediagate

// Evidence is a sign that the database has lost what it had committed: that it was
// replaced by a copy of itself which was some seconds older, as after a failover to a
// standby that was behind (D17).
type Evidence string

// The evidences.
const (
	// EvidenceAnswer is a vendor's answer whose attempt the row did not have.
	EvidenceAnswer Evidence = "answer_without_attempt"
	// EvidenceStray is a vendor's answer that fits no attempt of the row.
	EvidenceStray Evidence = "answer_fits_no_attempt"
	// EvidenceCompleted is a run that has completed, while its task is open.
	EvidenceCompleted Evidence = "completed_run_of_open_task"
	// EvidenceRunAhead is a run that has seen more of its task than the row has.
	EvidenceRunAhead Evidence = "run_ahead_of_row"
)

// Evidences are all of them.
func Evidences() []Evidence {
	return []Evidence{EvidenceAnswer, EvidenceStray, EvidenceCompleted, EvidenceRunAhead}
}
