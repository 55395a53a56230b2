// Package datadir owns the data folder of the standalone program: the lock
// that keeps a second process out, the secrets that stay across restarts, and
// the file that tells others where everything is.
//
// It starts nothing and imports nothing of the product.
package datadir
