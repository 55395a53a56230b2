// Package mcp lets language models use the gateway, by the Model Context Protocol
// (https://modelcontextprotocol.io): few tools, each of them calls of the public API with
// the caller's own key. So nothing is judged, priced or made in another way, and a task
// that was begun here is one like any other. It imports package client.
package mcp
