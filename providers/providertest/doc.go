// Package providertest is the conformance suite that every adapter passes.
//
// It owns a scripted vendor (Vendor), the suite (Run) and golden files (Golden). The suite needs
// only the tables of an adapter. A golden file shows a model's whole exchange with its vendor;
// together they prove that no field gets lost.
//
// The suite tests once what must hold for all adapters: how an adapter classifies network faults
// and wrong answers, that a submission is one request and never late, and that errors contain no
// secrets. It also demands what the adapter's Description declares: to find and to stop jobs, to
// poll many at once, to accept the declared fields and no others, and to refuse in Supports what
// Submit would refuse.
//
// Only tests import it. It imports the root package and providers.
package providertest
