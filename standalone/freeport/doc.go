// Package freeport finds TCP ports for servers that must be told a number and
// cannot be given a listener.
//
// It owns nothing but the search, and imports nothing of the project.
package freeport
