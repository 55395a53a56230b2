package main

import (
	"fmt"
	"runtime"
	"slices"
	"time"
)

func measureBursts(b *bench) {
	b.part(measureBurstEnds)
	b.part(measureBesideBurst)
}

// measureBurstEnds submits thousands of videos within seconds, to a vendor that takes no time.
// The floor for the end of the last video is the CPU time of the same number of videos in small
// batches, on all cores.
func measureBurstEnds(b *bench) {
	b.vendor.reset(func() time.Duration { return 0 }, false)
	g := b.install(250 * time.Millisecond)
	b.serve(g.RunWorker)
	var alone work
	small := b.batchSlice("task_", submit(g.client, video))
	b.runSlice(small, &work{}) // lets the worker start up
	b.runSlice(small, &alone)

	b.vendor.reset(func() time.Duration { return 0 }, false)
	tasks, before := b.size(4000, 500), b.ended("task_")
	began := time.Now()
	b.times(16, tasks, submit(g.client, video))
	acknowledged := time.Since(began)
	b.until("the burst has ended", time.Second, func() bool { return b.ended("task_")-before >= tasks })
	took := time.Since(began)

	arrivals := b.vendor.arrivals()
	tenths, length := make([]int, 10), arrivals[len(arrivals)-1].Sub(began)+1
	for _, at := range arrivals {
		tenths[10*at.Sub(began)/length]++
	}
	least := 10 * float64(slices.Min(tenths)) / float64(tasks)
	b.line(fmt.Sprintf("%d videos in %s, to the vendor", tasks, rounded(acknowledged)),
		fmt.Sprintf("%.2f of the mean in the slowest tenth of %s", least, rounded(length)), "≥ 0.50", least >= 0.5)
	floor := time.Duration(tasks) * alone.cpuPerItem() / time.Duration(runtime.NumCPU())
	b.ratio("the same, to the end of the last", "CPU time of as many", took, floor, 1.15)
}

// measureBesideBurst has thousands of videos at the vendor and as many more submitted, which is
// more than the worker's cache holds. Meanwhile some of the first end, at a rate that is only a
// part of what the machine can handle.
func measureBesideBurst(b *bench) {
	b.vendor.reset(func() time.Duration { return never }, false)
	g := b.install(waitingPoll)
	b.serve(g.RunWorker)
	tasks, ends := b.size(20_000, 1500), b.size(300, 60)
	g.fill(tasks)
	waiting := b.vendor.accepted()
	b.times(16, tasks, submit(g.client, video))
	times := make([]taskTimes, ends)
	for i, id := range b.vendor.finish(ends, 3) {
		b.until("what the vendor finished is completed", time.Second, func() bool {
			t, err := g.Store.TaskByID(b.ctx, id)
			b.check(err)
			times[i].ended, times[i].job = t.EndedAt, b.vendor.job(id)
			return t.Status.Terminal()
		})
	}
	if b.vendor.accepted() >= waiting+tasks {
		_, _ = fmt.Fprintln(b.out, "  the burst was at the vendor before the jobs had ended")
	}
	what := fmt.Sprintf("visible beside %d new and %d at the vendor, p50", tasks, tasks)
	b.within(what, median(times, func(l taskTimes) time.Duration { return l.ended.Sub(l.made) }), 10*time.Second)
}
