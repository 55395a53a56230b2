// Package compose checks the files for running in containers: the promises of
// docker-compose.yml, and that the gateway's processes start from the environment that it gives
// them.
//
// It holds tests and their shared code. It starts no container.
package compose
