// Package hostguard protects servers that trust every caller: Temporal's web interface and the
// sandbox. They listen on the loopback. But a web page in a browser on the same machine can
// reach the loopback too, across origins or under a host name that it has pointed there (DNS
// rebinding).
//
// The package decides which hosts in Host and Origin belong to such a server. It imports nothing
// of the product.
package hostguard
