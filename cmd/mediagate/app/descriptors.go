package app

import (
	"math"
	"syscall"
)

// connections returns how many connections of clients the API accepts: what the settings say, but
// never so many that no file descriptors are left for the database, the bucket, Temporal and
// vendors.
func (c Config) connections() int {
	return mostConnections(c.APIConnections.Total, descriptors())
}

// mostConnections leaves a quarter of the descriptors for everything else.
func mostConnections(asked int, descriptors uint64) int {
	return int(min(uint64(asked), max(1, descriptors/4*3)))
}

// descriptors returns how many files the process may open.
func descriptors() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt64
	}
	return limit.Cur
}
