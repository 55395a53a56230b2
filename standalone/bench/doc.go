// Command bench measures the gateway against floors that it takes in the same
// run, on the same servers: what the parts below it can do on this machine at
// this moment. A ratio says how much of that our own path leaves over, and
// says the same on a fast and on a busy machine; absolute figures do not.
//
// It owns the measurements, a vendor that answers at once, and the servers
// that it starts for itself: PostgreSQL, Temporal over PostgreSQL, S3. It
// imports everything, and nothing imports it.
package main
