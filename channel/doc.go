// Package channel holds our vendor accounts with their opened adapters. It chooses the account for
// a new job, finds the account of a job that is under way, and polls the vendors for all jobs that
// tasks wait for.
//
// While a vendor is away or refuses our account, the channel's breaker keeps new jobs from it
// (breaker.go). Speakers lets a channel speak a text while the client waits (speech.go).
//
// The package decides which account to ask, and what an answer means. Activities and Temporal make
// sure that each channel has one poller. Package task decides what an answer does to a task: the
// poller sends the answer as an event, through Store.Change. Most answers are quiet: they leave the
// task's next step as it is. The poller stores these in batches, without an event.
//
// The package imports the root package, task, providers (the interface) and failpoint. It
// declares what it needs of the database and of workflows as small interfaces of its own.
package channel
