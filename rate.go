package mediagate

import "time"

// RateLimit is how many submits a minute somebody may make, one at least. From
// rest so many come through at once; then they come back evenly.
type RateLimit struct {
	Of        string // the id of the account, or of the shared quota of keys
	PerMinute int

	// Where PerDay is not 0 the limit is of bytes: Bytes are to be taken, of so many that
	// come back in a day.
	Bytes  int64
	PerDay int64
}

// RateLeft is what a limit still lets through.
type RateLeft struct {
	Submits int
	Next    time.Duration // until there is one more; 0: all are there
}
