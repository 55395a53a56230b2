// Package guide renders the guides and the OpenAPI document as web pages, so that every gateway
// serves the documents of its own version. The pages are HTML with one style sheet, and load or
// run nothing else. The package imports api/openapi.
package guide
