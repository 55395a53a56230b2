// Package openapi adds the catalog's JSON Schemas to an OpenAPI document, in a form that linters
// and generators of clients can read, and completes a document with components of another.
package openapi
