// Package channel is our vendor accounts as a process knows them: the opened
// adapters, the choice of an account for a new job and for one that is under
// way, and the polling of all jobs that wait for an account.
//
// It decides whom to ask and what an answer means; that it is asked at all, and
// again when a process dies, is the activities' and Temporal's. It imports the
// root package, providers (the interface) and failpoint. What it needs of the
// database and of workflows it declares here as small interfaces.
package channel
