// Package inline writes requests that hold a client's images as base64, for vendors that take bytes
// and no links.
//
// It fetches the images before the call that submits, within that call's time and within one memory
// limit for all calls of a channel. It checks the type of each image, and encodes the bytes while
// the request is being sent.
//
// The package is not an adapter and makes no vendor calls. It imports the root package and
// vendorhttp.
package inline
