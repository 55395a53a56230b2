// Package mcp lets language models use the gateway, by the Model Context Protocol
// (https://modelcontextprotocol.io). Each of its few tools makes calls of the public API with
// the caller's own key. So a task that began here is one like any other.
//
// Hosts give up on a tool after a minute, and models then call it again. So every tool answers
// within 45 s, and run submits with Mediagate-Adopt: where its caller has left, the same run
// gets the same task.
//
// The package reads the arguments of tools by itself (argument.go): models write null for what
// they leave out, and an object as a text, and the SDK's check speaks of types of Go.
//
// It imports package client, and of package catalog how base64 is read.
package mcp
