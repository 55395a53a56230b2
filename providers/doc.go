// Package providers speaks to the vendors that make media.
//
// It owns the Provider interface and what an adapter says of itself; each
// vendor is one folder below it and one line in all/all.go. Adapters translate a validated
// request into the vendor's own, and the vendor's answers into reports and
// errors of the root package, by one table for status words and one for error
// codes. They decide nothing else: when to submit, to look up, to poll or to
// give up is the business of the callers.
//
// Adapters import the root package and providers/vendorhttp, and know neither
// Echo nor Temporal nor storage.
package providers
