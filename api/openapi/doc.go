// Package openapi puts JSON Schemas of the catalog into an OpenAPI document, in the form
// that generators of clients and linters read, and completes a document with components
// of another.
package openapi
