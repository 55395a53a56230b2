// Package declared makes adapters of YAML files: one file a vendor, whose HTTP API
// takes JSON, returns the id of a job, and answers polls with status words and links.
//
// It owns the form of the files (form.go), the jq expressions in them (jq.go), the
// adapter that speaks as a file says (adapter.go, answer.go), and the examples in a file,
// which are its tests (example.go). A file is checked whole when it is read: the error
// joins all faults, each with file, line and column.
//
// A declared adapter is an adapter like any other. Its calls go through vendorhttp: a
// job has one call that submits, an answer that proves nothing leaves the submission
// unknown, and no secret reaches a text. Expressions write requests and read answers.
// They cannot reach the environment, the clock or a file, and they are bounded, since a
// file may come from a stranger and an answer from anybody.
//
// docs/adding-a-provider.md describes the form. The vendors in the folder vendors are
// built in.
package declared
