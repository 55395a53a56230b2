// Package declared builds adapters from YAML files. A file describes one vendor, whose HTTP API
// accepts JSON, returns the id of a job, and answers polls with status words and links.
//
// It owns the form of the files (form.go), the jq expressions in them (jq.go), the adapter that
// follows a file (adapter.go, answer.go), and the examples in a file, which are its tests
// (example.go). Read checks a file and reports all faults together, each with file, line and column.
//
// A declared adapter has the same guarantees as any other. Its calls go through vendorhttp: a job
// has one call that submits, an answer that proves nothing leaves the submission unknown, and no
// secret appears in a text. Expressions write requests and read answers. They cannot reach the
// environment, the clock or a file. Their time and memory are bounded, because a file may come from
// a stranger, and an answer from any server.
//
// docs/adding-a-provider.md describes the form. The vendors in the folder vendors are built in.
package declared
