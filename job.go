package mediagate

// TaskJob is a command for all tasks that a filter selects. It is the input of a
// workflow, so it stays in a history: it holds what an operator wrote, and no more of a
// client's than the reference that the operator filters by.
type TaskJob struct {
	ID      string     `json:"id"`
	Filter  TaskFilter `json:"filter"` // of tasks that were there when the job began
	Action  string     `json:"action"` // one of the Action constants
	Channel string     `json:"channel,omitempty"`
	Reason  string     `json:"reason"`
	By      string     `json:"by"`
	// PerSecond is how many tasks are given the command a second, at most.
	PerSecond int `json:"per_second"`
	Matched   int `json:"matched"` // when the job began
}

// ActionID is the id under which the job's command for a task is on record. So a task is
// given it once, however often the job comes by.
func (j TaskJob) ActionID(taskID string) string { return "act_" + j.ID + "/" + taskID }
