// Package guide makes web pages of the guides and of the OpenAPI document: without them
// whoever runs the gateway would have to publish both somewhere else, for the version that
// runs. Pages are HTML with one style sheet; they load and run nothing else. It imports
// api/openapi.
package guide
