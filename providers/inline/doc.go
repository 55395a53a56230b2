// Package inline writes requests that hold a client's images as base64, for
// the adapters of vendors that take bytes and no links.
//
// The images are fetched before the call that submits, within its time and a
// bound of memory for all calls of a channel, looked at, and encoded while they
// leave.
//
// It is no adapter: it makes no call. It imports the root package and
// vendorhttp.
package inline
