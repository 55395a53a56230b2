// Package channel knows our vendor accounts: the opened adapters, the choice of an account for a
// new job and for a job that is under way, and the polling for all jobs that wait for an account.
//
// It decides which account to ask, and what an answer means. Activities and Temporal make sure
// that each channel has one poller. Package task decides what an answer does to a task: the
// poller sends the answer as an event, through Store.Change. Only quiet answers, which change no
// next step, are stored in batches instead.
//
// The package imports the root package, task, providers (the interface) and failpoint. It
// declares what it needs of the database and of workflows as small interfaces of its own.
package channel
