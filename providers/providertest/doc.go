// Package providertest is the conformance suite that every adapter passes.
//
// It owns a programmable vendor (Vendor), the suite (Run), which needs of an
// adapter only its tables, and golden files (Golden) that show a model's whole
// exchange with its vendor, and that no field is lost on its way. What holds
// for all adapters is written here once: how faults of the network and lies of
// a vendor are classed, that a submission is one request, that it is never
// late, that nothing secret comes back in a text. What an adapter's description
// says that it can do, the suite demands: to find and to stop jobs, to ask for
// many at once, to take these fields and no others, to say in advance what it
// would refuse.
//
// Only tests import it. It imports the root package and providers.
package providertest
