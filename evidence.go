package mediagate

// Evidence is a sign that the database has lost committed transactions: it was replaced by a copy
// that was some seconds older, as after a failover to a lagging standby (D17).
type Evidence string

// The kinds of evidence.
const (
	// EvidenceAnswer is a vendor's answer to an attempt that the row lacks.
	EvidenceAnswer Evidence = "answer_without_attempt"
	// EvidenceStray is a vendor's answer that matches no attempt of the row.
	EvidenceStray Evidence = "answer_fits_no_attempt"
	// EvidenceCompleted is a completed run of an open task.
	EvidenceCompleted Evidence = "completed_run_of_open_task"
	// EvidenceRunAhead is a run that has seen more of its task than the row has.
	EvidenceRunAhead Evidence = "run_ahead_of_row"
)

// Evidences lists the kinds of evidence.
func Evidences() []Evidence {
	return []Evidence{EvidenceAnswer, EvidenceStray, EvidenceCompleted, EvidenceRunAhead}
}
