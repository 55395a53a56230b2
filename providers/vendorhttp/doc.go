// Package vendorhttp makes all HTTP calls from adapters to vendors.
//
// It owns what all vendors have in common: the limits of a call, the proof of whether a submission
// left this process, and the cleaning of the vendor's text before clients or logs see it. It knows
// no vendor: error codes and status words are tables of the adapters.
//
// Each call declares its Effect, which decides what a failure of the call means. A read may always
// be repeated, so each failure is mediagate.KindTransient. A failed submission is KindUnreached if
// the vendor cannot have a job of it, because no byte of the request was written or a streamed body
// broke off. It is KindAmbiguous in every other case, also if the answer breaks off in the middle.
//
// Each submission, and each call that stops a job, uses a fresh HTTP/1.1 connection. So the
// transport cannot send a request twice, and a connection that the vendor closed while it was idle
// cannot make a submission ambiguous.
//
// Client.Ask makes a call and classifies its answer by the effect and by what the adapter reads in
// the answer (Reading). So this package decides once for all vendors what an answer proves.
//
// It imports the root package and nothing else of this module, neither Echo nor Temporal.
package vendorhttp
