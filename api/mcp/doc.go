// Package mcp lets language models use the gateway by the Model Context Protocol
// (https://modelcontextprotocol.io). It has a few tools, each of which calls the public API with
// the caller's own key. So a task that began here is like any other.
//
// Hosts time a tool out after a minute, and models then call it again. Therefore every tool
// answers within 45 s, and run submits with Mediagate-Adopt: if its caller has left, the same run
// gets the same task.
//
// The package parses the arguments of tools itself (argument.go): models send null for what they
// leave out, and objects as strings, and the SDK's own check reports Go types.
//
// It imports package client, and package catalog for reading base64.
package mcp
