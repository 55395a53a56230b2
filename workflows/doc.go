// Package workflows holds the decisions of the durable path: what a task does
// next, given its story. It owns the names that the outside relies on:
// workflow ids, task queues, signals, search attributes.
//
// Workflows keep no state that matters. Each step is an activity that reads
// the database, does one thing, and returns the story as it then stands; a
// run that was reset, terminated or replaced begins with the story and goes
// on from there. Nothing here does I/O, and nothing here knows a vendor, a
// prompt or a link.
//
// It imports the root package and, for names and argument types, activities.
package workflows
