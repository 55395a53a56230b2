// Package googleapi is what the surfaces of Google's have in common: the
// errors of google.rpc, long-running operations, and Veo's requests and
// results, which are nearly the same on Vertex AI and on the Gemini API.
//
// It is no adapter: it makes no call, and what only one surface has is in that
// one's folder. It imports the root package, inline and vendorhttp.
package googleapi
