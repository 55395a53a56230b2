// Package metrics is what Prometheus reads of a process: the instruments that count as
// things happen, and the figures that are read from the database when somebody scrapes.
//
// The process wires it: a part that is to be counted takes a function or a small
// interface of its own, and knows nothing of this package. Names begin with mediagate_,
// those of the Temporal SDK with temporal_. Labels are bounded: names of channels, types,
// steps, classes of answers. None holds the id of a task, an account or a key, or
// anything that a client or a vendor wrote.
//
// docs/watching.md has the table of all metrics, deploy/ the alert rules and the dashboard
// that use them.
package metrics
