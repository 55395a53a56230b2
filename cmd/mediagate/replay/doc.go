// Package replay is the command `mediagate replay`: it runs the workflow code of this
// build against the history of a run that has happened, tells step by step what the run
// decided, and where this build would decide otherwise. An engineer proves a fix with it
// before it is deployed: a build that differs from a run under way blocks that run.
//
// Nothing is executed: activities, timers and signals come from the history. The history
// comes from Temporal, by the connection that the settings name, or from a file as
// Temporal's UI saves it. The package needs neither database nor API.
package replay
