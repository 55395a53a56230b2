package kling

import "strings"

// place is where to ask for a job, and which file the client wants. The older generation has a
// place for each endpoint, the newer one a single place. The vendor makes a file with a watermark
// beside the plain one, on demand.
type place struct {
	endpoint string
	marked   bool
}

// marking follows the endpoint in the State of a reference. Stored references contain it, so it
// must not change.
const marking = " watermark"

// state returns the place in the form that a reference stores.
func (p place) state() string {
	if p.marked {
		return p.endpoint + marking
	}
	return p.endpoint
}

func placeOf(state string) place {
	endpoint, marked := strings.CutSuffix(state, marking)
	return place{endpoint, marked}
}

// newerTasks is the endpoint of all jobs of the newer generation.
const newerTasks = "tasks"

func (p place) newer() bool { return p.endpoint == newerTasks }
