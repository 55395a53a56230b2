// Package channel holds our vendor accounts with their opened adapters. It chooses the account for
// a new job, finds the account of a job that is under way, and polls the vendors for all jobs that
// tasks wait for.
//
// The package decides which account to ask, and what an answer means. Activities and Temporal make
// sure that each channel has one poller. Package task decides what an answer does to a task: the
// poller sends the answer as an event, through Store.Change. Only quiet answers, which change no
// next step, are stored in batches instead.
//
// The package imports the root package, task, providers (the interface) and failpoint. It
// declares what it needs of the database and of workflows as small interfaces of its own.
package channel
