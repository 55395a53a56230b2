// Package uiserver serves Temporal's web interface from this process.
//
// It owns the settings of the interface and its start and stop. It imports nothing of the
// product. A caller of the interface may do anything to workflows, so package hostguard protects
// it.
package uiserver
