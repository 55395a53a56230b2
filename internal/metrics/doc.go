// Package metrics serves the metrics of a process to Prometheus: instruments that count events as
// they happen, and figures that a scrape reads from the database.
//
// The process wires it: a package that counts takes a function or a small interface of its own and
// does not import this one. Names begin with mediagate_, those of the Temporal SDK with temporal_.
// Label values come from fixed sets: channels, types, steps, classes of answers. No label holds the
// id of a task, an account or a key, or a text of a client or a vendor.
//
// docs/watching.md has the table of all metrics, deploy/ the alert rules and the dashboard
// that use them.
package metrics
