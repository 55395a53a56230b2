package mediagate

import "time"

// Retention is how long things are kept after their end; 0 is for ever.
type Retention struct {
	Tasks      time.Duration
	Results    time.Duration // the files of completed tasks
	Deliveries time.Duration
}

// FilesUntil is until when the files of a completed task are kept; zero for ever.
func (r Retention) FilesUntil(t *Task) time.Time {
	if r.Results == 0 || t.Plan.KeepForever || t.EndedAt.IsZero() {
		return time.Time{}
	}
	return t.EndedAt.Add(r.Results)
}

// Removal is a kind of things that are removed in time.
type Removal string

// The kinds: rows of the database, then objects of the bucket.
const (
	RemoveDeliveries  Removal = "deliveries"
	RemoveIdempotency Removal = "idempotency"
	RemoveResults     Removal = "results" // the row names its files no more
	RemoveTasks       Removal = "tasks"
	RemoveSpeeches    Removal = "speeches"
	RemoveAudit       Removal = "audit"

	RemoveFiles      Removal = "files"      // that clients uploaded
	RemoveUploads    Removal = "uploads"    // media that came within requests
	RemoveUnfinished Removal = "unfinished" // multipart uploads that nobody ended
	RemoveObjects    Removal = "objects"    // files of tasks that no row names

	// RemovalRun stands for a whole run through all kinds.
	RemovalRun Removal = "run"
)

// Removals lists the kinds in the order in which a run goes through them.
func Removals() []Removal {
	return []Removal{
		RemoveDeliveries, RemoveIdempotency, RemoveResults, RemoveTasks, RemoveSpeeches, RemoveAudit,
		RemoveFiles, RemoveUploads, RemoveUnfinished, RemoveObjects,
	}
}

// RemovalState is how far retention is with a kind.
type RemovalState struct {
	Mark    string    // up to which id or key nothing is left to remove
	Removed int64     // ever
	EndedAt time.Time // of the last time that it came to the end
}

// RemovedSlice is what one slice of a kind came to.
type RemovedSlice struct {
	Removed int    `json:"removed"`
	Next    string `json:"next,omitempty"` // where the next slice begins: an id, or a key of the bucket
	More    bool   `json:"more,omitempty"` // there is one
}
