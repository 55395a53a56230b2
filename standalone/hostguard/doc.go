// Package hostguard stands in front of servers that trust whoever reaches them:
// Temporal's web interface and the sandbox. They listen on the loopback, but a page
// in a browser of the same machine reaches that too: under a name of its own that
// it has lead here (DNS rebinding), or across origins.
//
// It owns which names in Host and Origin belong to such a server, and imports
// nothing of the product.
package hostguard
