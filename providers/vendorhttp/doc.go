// Package vendorhttp is the one way in which adapters speak HTTP to vendors.
//
// It owns what all vendors have in common: the bounds of a call, the proof of
// whether a submission left this process, and the cleaning of vendor text
// before anyone reads it. It knows no vendor: codes and status words are the
// adapters' tables.
//
// A call says its effect, since what a failure means follows from it. A read
// may always be repeated, so each failure is mediagate.KindTransient. A
// submission that fails is KindUnreached when the vendor cannot have a job of
// it, since not one byte was written or a streamed body broke off, and
// KindAmbiguous in every other case, also in the middle of its answer.
// Submissions, and calls that stop a job, therefore go out on a fresh
// HTTP/1.1 connection each: nothing is replayed by the transport, and a
// connection that the vendor closed while idle cannot make a submission
// ambiguous.
//
// Client.Ask makes a call and classifies its answer, by the effect and by what the
// adapter reads in it (Said). So what an answer proves is decided here, once for
// all vendors.
//
// It imports the root package and nothing else of this module; Echo and
// Temporal are unknown here.
package vendorhttp
