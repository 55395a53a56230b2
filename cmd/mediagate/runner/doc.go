// Package runner is `mediagate run`: it makes a request to a model by one command line, from the
// price to the files. It uses package client and prints for people. The task continues at the
// gateway whatever happens to the command.
package runner
