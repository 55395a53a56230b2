// Command bench measures the gateway against floors that it takes in the same
// run, on the same servers: what the parts below the gateway can do on this
// machine at this moment. A ratio to a floor says the same on a fast and on a
// slow machine; an absolute figure does not.
//
// Each question is one that a user asks, and prints one line for each aim.
// docs/performance.md says what the lines measure.
//
// A question is a benchmark of package testing that runs once. From there it
// has its cleanups, its folders and a way to end at the first error.
//
// It owns the measurements, a vendor that answers at once, and the servers
// that it starts for itself: PostgreSQL, Temporal over PostgreSQL, S3. It
// imports everything, and nothing imports it.
//
// The files, in reading order: main.go has the servers and the page, measure.go
// the turns of floor and subject; gateway.go and vendor.go set up what is
// measured. The questions are in api.go (submit, read), task.go (full, visible,
// waiting, memory), burst.go and fairness.go.
package main
