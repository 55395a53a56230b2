// Package mediagate holds the domain types of the media generation gateway: tasks, attempts,
// channels, accounts, money, and the one error type that every package returns.
//
// It imports only the standard library and nothing of its own module. So all other packages can
// use these types without knowing each other.
package mediagate
