// Package blob keeps result files in an S3 bucket.
//
// Mirror streams a file into the bucket in constant memory; all uploads of a store share one
// budget. On the way Mirror bounds the size, detects the type by the content, computes the
// hash and reads the headers. Either the whole file is stored under its key, or nothing: a
// failed upload is aborted, and AbortStale removes the uploads of killed processes. Sign makes
// links to stored files without a network call.
//
// The package imports the domain types and, to read media headers, media/mediainfo. It knows
// neither where files come from nor anything about tasks.
package blob
