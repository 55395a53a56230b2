// Package uiserver serves Temporal's web interface from this process.
//
// It owns the interface's settings and its life, and imports nothing of the
// product. Who reaches the interface may do anything to workflows, so package
// hostguard stands in front of it.
package uiserver
