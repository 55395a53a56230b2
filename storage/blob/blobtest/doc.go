// Package blobtest is the conformance suite of package blob: Run proves the
// store's promises on a real S3 server that the caller provides.
//
// It imports blob and the domain types, and no server, so that the product's
// own module needs none.
package blobtest
