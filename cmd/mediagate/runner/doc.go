// Package runner is `mediagate run`: a request to a model by one line, from its price to its
// files. It is package client with words for a person; the task goes on at the gateway
// whatever happens to the command.
package runner
