// Package openapi holds the parts of an OpenAPI 3.1 document, and makes
// schemas: of Go types for what is answered, and of the catalog's JSON Schemas
// for what is asked.
//
// It knows no route and no model. It imports nothing of ours.
package openapi
