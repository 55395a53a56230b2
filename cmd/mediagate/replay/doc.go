// Package replay is the command `mediagate replay`. It runs the workflow code of this build against
// the history of a run, and prints step by step what the run decided and where this build would
// decide differently. Engineers use it before they deploy a fix: a build that differs from an open
// run blocks that run.
//
// It executes nothing: activities, timers and signals come from the history. The history comes from
// Temporal, through the connection in the settings, or from a file that Temporal's UI saved. The
// package needs no database and no API.
package replay
