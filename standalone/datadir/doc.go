// Package datadir owns the data folder of the standalone program: the lock that keeps a second
// process out, the secrets that survive restarts, and the file with the addresses of the
// servers.
//
// It starts nothing and imports nothing of the product.
package datadir
