// Package operator holds the commands that act on a running gateway over its
// admin API. It prints tables for people and JSON for scripts, and knows
// nothing but HTTP.
package operator
