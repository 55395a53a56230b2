// Package vendorhttp makes all HTTP calls from adapters to vendors.
//
// It owns what all vendors have in common: the limits of a call, the proof of whether a submission
// left this process, and the cleaning of the vendor's text before clients or logs see it. It knows
// no vendor: error codes and status words are tables of the adapters.
//
// Each call declares its Effect, which decides what it means if no complete answer comes. A read may
// always be repeated, so the error is mediagate.KindTransient. For a submission the error is
// KindUnreached if the vendor cannot have made a job, because no byte of the request was written or
// a streamed body broke off. In every other case it is KindAmbiguous, also if the answer breaks off
// in the middle.
//
// Each submission, and each call that stops a job, uses a fresh HTTP/1.1 connection. So the
// transport cannot send a request twice, and a connection that the vendor closed while it was idle
// cannot make a submission ambiguous.
//
// Client.Ask makes a call and lets the adapter read the answer (Reading). From the reading and the
// effect it decides what the answer proves, by the same rules for all vendors.
//
// It imports the root package and nothing else of this module, neither Echo nor Temporal.
package vendorhttp
