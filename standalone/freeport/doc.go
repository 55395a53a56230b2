// Package freeport finds TCP ports for servers that must be told a number and
// cannot be given a listener.
//
// It owns the search and what keeps a found port from others, and imports
// nothing of the project.
package freeport
