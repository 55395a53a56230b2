// Package blob keeps result files in an S3 bucket.
//
// Mirror streams a file into the bucket in constant memory, of which all
// uploads of a store share one budget: bounded in size, typed by its content,
// hashed and measured on the way. Either the whole file is stored under its
// key, or nothing is: an upload that fails is aborted, and what a killed
// process leaves behind AbortStale removes. Sign makes links to stored files
// without asking anybody.
//
// It imports the domain types and, for reading media headers, media/mediainfo. It
// knows neither where files come from nor what becomes of tasks.
package blob
