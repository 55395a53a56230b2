// Package listener guards the API's listeners: how many connections there are and whose
// (Connections), where a request ends (EndInDoubt), who a client behind proxies is
// (ClientAddress), and what the server says of itself (NewServerLog). It keeps D18 for
// what happens before a request is one: strangers who hold connections leave room for
// others.
//
// It knows nothing of tasks, keys or routes, and imports package limit alone.
package listener
