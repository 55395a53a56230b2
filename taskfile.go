package mediagate

import (
	"slices"
	"strconv"
	"strings"
)

// TaskFile is an input that is a file of another task of the account, with the address
// /v1/tasks/{id}/files/{n}. The other task is called a source. It may still run when the task with
// the input is submitted (D21).
type TaskFile struct {
	Field  string `json:"field"` // of the request, such as image_urls[0]
	TaskID string `json:"task_id"`
	N      int    `json:"file"`          // from 1, in the order of Files
	Key    string `json:"key,omitempty"` // of the object in our bucket; empty until all sources have ended
	Status Status `json:"-"`             // the source's status when the row was read; empty if it was erased
}

// ParseTaskFile parses the path of a task's file. ok is false for any other text.
func ParseTaskFile(path string) (taskID string, n int, ok bool) {
	rest, ok := strings.CutPrefix(path, "/v1/tasks/")
	taskID, number, found := strings.Cut(rest, "/files/")
	n, err := strconv.Atoi(number)
	plain := err == nil && n >= 1 && strconv.Itoa(n) == number && taskID != "" && !strings.ContainsAny(taskID, "/%?#")
	return taskID, n, ok && found && plain
}

// Files returns the result files of a completed task in the order in which answers list them. A
// grid of four pictures comes before its quarters.
func (t *Task) Files() []Result {
	if t.Status != StatusCompleted {
		return nil
	}
	var files []Result
	for _, role := range []Role{RoleGrid, RoleMain} {
		for _, r := range t.Results {
			if r.Role == role {
				files = append(files, r)
			}
		}
	}
	return files
}

// File returns the n-th of Files, counted from 1. ok is false if there is none.
func (t *Task) File(n int) (r Result, ok bool) {
	files := t.Files()
	if n < 1 || n > len(files) {
		return Result{}, false
	}
	return files[n-1], true
}

// MostFiles returns the largest number of files that the task can have.
func (t *Task) MostFiles() int {
	switch {
	case t.Status == StatusCompleted:
		return len(t.Files())
	case t.Plan.Files != nil:
		return *t.Plan.Files
	}
	files := int64(1)
	for _, charge := range t.Charges {
		files = max(files, charge.Files)
		if charge.Unit == UnitImage {
			files = max(files, charge.Quantity)
		}
	}
	return int(files)
}

// LacksSources reports whether some source of the task is not known to have ended with its file.
func (t *Task) LacksSources() bool {
	return slices.ContainsFunc(t.Sources, func(f TaskFile) bool { return f.Key == "" })
}

// SourceIDs returns the ids of the task's sources, sorted and each only once.
func (t *Task) SourceIDs() []string {
	ids := make([]string, len(t.Sources))
	for i, f := range t.Sources {
		ids[i] = f.TaskID
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
