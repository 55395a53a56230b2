// Package s3server runs a real S3 server, Versity's gateway over a folder,
// inside the process.
//
// It knows nothing of the product. The server allows one instance a process
// and changes the process's working directory to its folder: resolve relative
// paths before Start.
//
// Its tests prove on this server what package storage/blob promises.
package s3server
