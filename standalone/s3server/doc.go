// Package s3server runs a real S3 server inside this process: Versity's gateway over a folder.
//
// It knows nothing of the product. A process can run only one instance. The server changes the
// working directory of the process to its folder, so resolve relative paths before Start.
//
// Its tests check the promises of package storage/blob on this server.
package s3server
