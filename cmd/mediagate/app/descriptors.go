package app

import (
	"math"
	"syscall"
)

// connections is how many clients' connections the API takes: what the settings
// say, and never so many that no descriptor is left for database, bucket, Temporal
// and vendors.
func (c Config) connections() int {
	return mostConnections(c.APIConnections.Total, descriptors())
}

// mostConnections leaves a quarter of the descriptors to all else.
func mostConnections(asked int, descriptors uint64) int {
	return int(min(uint64(asked), max(1, descriptors/4*3)))
}

// descriptors is how many files the process may open.
func descriptors() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt64
	}
	return limit.Cur
}
