// Command bench measures the gateway against floors. A floor is what the parts below the gateway
// can do on this machine at this moment, measured in the same run and on the same servers. The
// ratio to a floor is comparable between a fast and a slow machine. An absolute figure is not.
//
// Each measurement answers a question of a user and prints one line for each aim.
// docs/performance.md explains the lines.
//
// A question runs as a benchmark of package testing, once. The package provides its cleanups,
// its folders and a way to stop at the first error.
//
// The command owns the measurements, a vendor that answers at once, and the servers that it
// starts for itself: PostgreSQL, Temporal over PostgreSQL, and S3. It may import everything, and
// nothing imports it.
//
// The files, in reading order: main.go has the servers and the output, measure.go the turns of
// floor and subject, and gateway.go and vendor.go set up what is measured. The questions are in
// api.go (submit, read), task.go (full, visible, waiting, memory), burst.go and fairness.go.
package main
