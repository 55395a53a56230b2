package channel

import (
	"math"
	"time"
)

// Durations are kept as a histogram whose bins grow by binGrowth, so that what
// is known of five seconds and of two hours is equally fine.
const (
	binFirst  = 250 * time.Millisecond // end of the first bin
	binGrowth = 1.08
	binCount  = 170 // the last one ends after a day

	priorSpread = 0.6  // of the logarithm of a duration around the catalog's expected one
	forgetting  = 0.97 // what an end is worth when the next one comes: some thirty are remembered
)

// durations are what is known of how long a model's jobs take: the ends that
// were seen, the late ones counting most, and a prior of the weight of one end.
// Half of the prior lies around the catalog's word, half is spread over all
// durations: what is seen may prove the catalog wrong, and a job may take
// longer than any before it, without ever being thought to be over.
type durations struct {
	prior   [binCount]float64
	learned [binCount]float64
	hazard  [binCount]float64 // a second, of a job that has come so far
	root    [binCount]float64 // of hazard
}

func newDurations(expected time.Duration) *durations {
	d := &durations{}
	middle := math.Log(max(expected, time.Second).Seconds())
	around := func(t time.Duration) float64 { // the share of the prior's first half up to t
		return 0.5 * math.Erfc((middle-math.Log(t.Seconds()))/(priorSpread*math.Sqrt2))
	}
	var before float64
	for bin := range d.prior {
		upTo := around(binEnd(bin))
		d.prior[bin] = (upTo-before)/2 + 0.5/binCount
		before = upTo
	}
	d.weigh()
	return d
}

// binEnd is where a bin ends and the next one begins.
func binEnd(bin int) time.Duration {
	return time.Duration(float64(binFirst) * math.Pow(binGrowth, float64(bin)))
}

func binStart(bin int) time.Duration {
	if bin == 0 {
		return 0
	}
	return binEnd(bin - 1)
}

// binOf finds the bin of a duration; the last one has no end.
func binOf(elapsed time.Duration) int {
	if elapsed < binFirst {
		return 0
	}
	bin := 1 + int(math.Log(float64(elapsed)/float64(binFirst))/math.Log(binGrowth))
	return min(bin, binCount-1)
}

// learn takes in an end that came after a job was last seen to run at after,
// and was seen at seen. Where in between it was is guessed from what is known.
func (d *durations) learn(after, seen time.Duration) {
	from, to := binOf(after), binOf(seen)
	var weights [binCount]float64
	var total float64
	for bin := from; bin <= to; bin++ {
		start, end := max(binStart(bin), after), min(binEnd(bin), seen)
		covered := max(float64(end-start), 1) / float64(binEnd(bin)-binStart(bin))
		weights[bin] = covered * (d.prior[bin] + d.learned[bin])
		total += weights[bin]
	}
	for bin := range d.learned {
		d.learned[bin] *= forgetting
	}
	for bin := from; bin <= to; bin++ {
		// The neighbours get their share: the next job is not this one.
		share := weights[bin] / total
		d.learned[bin] += share / 2
		d.learned[max(bin-1, 0)] += share / 4
		d.learned[min(bin+1, binCount-1)] += share / 4
	}
	d.weigh()
}

// weigh works the hazards out.
func (d *durations) weigh() {
	var rest float64 // of the jobs that have not ended when the bin ends
	for bin := binCount - 1; bin >= 0; bin-- {
		mass := d.prior[bin] + d.learned[bin]
		width := (binEnd(bin) - binStart(bin)).Seconds()
		if bin == binCount-1 {
			d.hazard[bin] = 1 / binEnd(bin).Seconds()
		} else {
			d.hazard[bin] = math.Log1p(mass/rest) / width
		}
		d.root[bin] = math.Sqrt(d.hazard[bin])
		rest += mass
	}
}
