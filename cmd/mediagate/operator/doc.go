// Package operator has the commands that call the admin API of a running gateway. It prints tables
// for people and JSON for scripts.
package operator
