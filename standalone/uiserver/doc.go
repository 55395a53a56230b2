// Package uiserver serves Temporal's web interface from this process.
//
// It owns the interface's settings and its life, and imports nothing of the
// product.
package uiserver
