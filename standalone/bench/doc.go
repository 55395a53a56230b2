// Command bench measures the gateway against floors that it takes in the same
// run, on the same servers: what the parts below it can do on this machine at
// this moment. A ratio says how much of that our own path leaves over, and
// says the same on a fast and on a busy machine; absolute figures do not.
//
// Each chapter asks a question of a user and answers it with a few rows.
// docs/performance.md says what each row measures, and its floor.
//
// It owns the measurements, a vendor that answers at once, and the servers
// that it starts for itself: PostgreSQL, Temporal over PostgreSQL, S3. It
// imports everything, and nothing imports it.
//
// The files, in reading order: main.go and table.go are the page; compare.go
// takes floor and subject in turns; machine.go, gateway.go, process.go,
// stage.go, vendor.go, customer.go and life.go set up what is measured; each
// chapter has a file of its name. The chapter fairness also has crowd.go.
package main
