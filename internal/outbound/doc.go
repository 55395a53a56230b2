// Package outbound decides where the gateway may send requests that someone
// else chose the target of: callbacks, and media that a vendor or a client
// points to.
//
// It owns the URL rules, the address rules, and HTTP clients that enforce
// them. A URL is judged twice: its text when it is handed in, without asking
// DNS, and its addresses each time a connection is made, since a name may
// resolve to something else by then. The connection goes to an address that
// was judged, never to a name that would be resolved again.
//
// Calls to vendors may go through an operator's proxy, which connects in our place. Then the
// guard checks the text, and the addresses that our own resolver knows for the name. The
// proxy decides in the end. Callbacks and clients' media never use a proxy.
//
// Broken rules are *mediagate.Error of mediagate.KindInvalid, with a reason
// that may be shown to the client. A host that cannot be found or reached is
// mediagate.KindUnreached: it may work the next time.
//
// The package imports the root package only. It knows nothing of tasks,
// deliveries or storage.
package outbound
