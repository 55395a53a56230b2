// Package mediagate holds the domain types of the media generation gateway:
// tasks, attempts, channels, accounts, money, and the one error type that
// every package returns.
//
// It imports the standard library only and nothing of its own module, so
// that every other package can speak these types without knowing each other.
package mediagate
