// Package channel is our vendor accounts as a process knows them: the opened
// adapters, the choice of an account for a new job and for one that is under
// way, and the polling of all jobs that wait for an account.
//
// It decides which account to ask and what an answer means. Activities and Temporal see
// to it that each channel has one poller. What an answer does to a task is decided by
// package task: a poller sends it as an event through Store.Change, except quiet answers,
// which are stored in batches.
//
// It imports the root package, task, providers (the interface) and failpoint. What it
// needs of the database and of workflows it declares here as small interfaces.
package channel
