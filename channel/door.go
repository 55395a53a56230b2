package channel

// Doors tells which channels take new jobs. One that takes none still polls,
// mirrors and cancels what it has.
type Doors interface {
	// Open reports whether the channel of that name takes new jobs.
	Open(name string) bool
}
