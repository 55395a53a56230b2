// Package listener guards the API's listeners. Connections bounds the number of connections and
// shares them among clients, HasUncertainEnd finds requests whose end is ambiguous, ClientAddress
// finds the client behind proxies, and NewServerLog takes the messages of net/http. The package
// keeps D18 before a request has begun: clients that hold connections open leave room for others.
//
// It knows nothing of tasks, keys or routes, and imports package limit only.
package listener
