// Package googleapi holds the parts that Google's surfaces share: the errors of google.rpc,
// long-running operations, and Veo's requests and results, which are nearly the same on Vertex AI
// and on the Gemini API.
//
// The package is not an adapter and makes no calls. Code that only one surface needs is in the
// folder of that surface's adapter. The package imports the root package, inline and vendorhttp.
package googleapi
