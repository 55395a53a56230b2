// Package outbound decides where the gateway may send requests whose target a client or a vendor
// chose: callbacks and downloads of media.
//
// It owns the URL rules, the address rules, and the HTTP clients that enforce them. A URL is
// checked twice: its text when a client submits it, without DNS, and its addresses before each
// connection, since a name may have other addresses by then. The client connects to the address
// that it checked and does not resolve the name again.
//
// Calls to vendors may go through an operator's proxy. Then the guard checks the text, and the
// addresses that our own resolver finds for the name. The proxy itself decides which address it
// connects to. Callbacks and downloads of clients' media never use a proxy.
//
// A broken rule is a *mediagate.Error of mediagate.KindInvalid. Clients may read its message. A
// host that cannot be found or reached is mediagate.KindUnreached: the next attempt may work.
//
// The package imports the root package only. It knows nothing of tasks,
// deliveries or storage.
package outbound
