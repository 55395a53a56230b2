// Package runner is `mediagate run`. One command line makes a request to a model: it shows the
// price, submits, waits for the task and saves the files. The package uses package client and
// prints for people. The task continues at the gateway whatever happens to the command.
package runner
