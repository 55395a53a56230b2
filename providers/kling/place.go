package kling

import "strings"

// place is where to ask for a job, and which file the client wants. The older generation has a
// place for each endpoint, the newer one a single place. The vendor makes a file with a watermark
// beside the plain one, on demand.
type place struct {
	endpoint       string
	wantsWatermark bool
}

// watermarkSuffix follows the endpoint in the State of a reference. Stored references contain it,
// so it must not change.
const watermarkSuffix = " watermark"

// state returns the place in the form that a reference stores.
func (p place) state() string {
	if p.wantsWatermark {
		return p.endpoint + watermarkSuffix
	}
	return p.endpoint
}

func placeOf(state string) place {
	endpoint, marked := strings.CutSuffix(state, watermarkSuffix)
	return place{endpoint, marked}
}

// newerTasks is the endpoint of all jobs of the newer generation.
const newerTasks = "tasks"

func (p place) newer() bool { return p.endpoint == newerTasks }
