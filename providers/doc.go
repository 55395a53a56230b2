// Package providers defines how the gateway talks to the vendors that make media.
//
// It owns the Provider interface and the Description that each adapter gives of itself. A vendor is
// either one folder below this one and one entry in all/all.go, or one file in declared/vendors. An
// adapter translates a validated request into the vendor's API with one pure function, which also
// reports requests that the API cannot express. It translates the vendor's answers into reports and
// errors of the root package, with one table for status words and one for error codes. Adapters
// decide nothing else: the callers decide when to submit, look up, poll or stop.
//
// Adapters import the root package, this package, providers/vendorhttp, and the packages of parts
// that several adapters share, such as inline. They know neither Echo nor Temporal nor storage.
package providers
