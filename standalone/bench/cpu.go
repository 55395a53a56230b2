package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// tick is what /proc counts in: a hundredth of a second on every Linux that
// Go runs on.
const tick = 10 * time.Millisecond

// cpuTime is what this process and all below it (PostgreSQL, the worker) have
// used so far; 0 where there is no /proc.
func cpuTime() time.Duration {
	type process struct {
		parent int
		used   int64
	}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	all := make(map[int]process, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended meanwhile
		}
		// The name, in parentheses, may hold anything.
		_, rest, ok := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		if !ok || len(fields) < 15 {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		parent, _ := strconv.Atoi(fields[1])
		p := process{parent: parent}
		for _, field := range fields[11:15] { // user and system time, own and of children that have ended
			n, _ := strconv.ParseInt(field, 10, 64)
			p.used += n
		}
		all[pid] = p
	}
	var total int64
	for pid, p := range all {
		for at := pid; at > 1; at = all[at].parent {
			if at == os.Getpid() {
				total += p.used
				break
			}
		}
	}
	return time.Duration(total) * tick
}

// machineTime is what all processes of the machine have used so far; 0 where
// there is no /proc.
func machineTime() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), "\n")
	var busy int64
	for i, field := range strings.Fields(first) {
		const idle, waiting, guest = 4, 5, 9 // guests are counted as users already
		if i == 0 || i == idle || i == waiting || i >= guest {
			continue
		}
		n, _ := strconv.ParseInt(field, 10, 64)
		busy += n
	}
	return time.Duration(busy) * tick
}

// share measures how much of the machine others have had since it was made.
type share struct {
	began         time.Time
	ours, machine time.Duration
}

func startShare() share { return share{time.Now(), cpuTime(), machineTime()} }

// others is that share, from 0 to 1.
func (s share) others() float64 {
	ours, machine := cpuTime()-s.ours, machineTime()-s.machine
	whole := time.Since(s.began) * time.Duration(runtime.NumCPU())
	return min(1, max(0, float64(machine-ours)/float64(whole)))
}
