package kling

import "strings"

// place is where a job is asked for, and what is wanted of it: the older
// generation keys ids by endpoint, the newer one has a single place for all. A
// marked file is made beside the plain one on demand.
type place struct {
	endpoint string
	marked   bool
}

// marking follows the endpoint in a reference's state. Stored references have
// it, so it stays as it is.
const marking = " watermark"

// state is the place as a reference keeps it.
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

// newerTasks stands for an endpoint: the place of the newer generation's jobs.
const newerTasks = "tasks"

func (p place) newer() bool { return p.endpoint == newerTasks }
