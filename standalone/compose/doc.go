// Package compose checks the files for running in containers: what
// docker-compose.yml promises, and that the gateway's processes start from
// the environment that it gives them.
//
// It holds tests and what they share. No container is started.
package compose
