// Package providers speaks to the vendors that make media.
//
// It owns the Provider interface and what an adapter says of itself; each
// vendor is one folder below it and one entry in all/all.go. Adapters translate
// a validated request into the vendor's own, by one pure function that also
// answers whether it can be expressed, and the vendor's answers into reports and
// errors of the root package, by one table for status words and one for error
// codes. They decide nothing else: when to submit, to look up, to poll or to
// give up is the business of the callers.
//
// Adapters import the root package, this one and providers/vendorhttp, and know neither
// Echo nor Temporal nor storage.
package providers
