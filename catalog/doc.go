// Package catalog knows the models: what a request for each may hold, what
// it costs, and by which routes it can be produced.
//
// A model is one YAML file in models/. It holds a JSON Schema (draft
// 2020-12), the one that clients can be shown, since it is the one that
// judges their requests; named checks for what a schema cannot say; the routes with
// their tables of upstream values; and the price table. Files of a directory
// given to Load are laid over the built-in ones.
//
// Accept turns the body of a submit into a Request: the parameters with
// their defaults, the charges, and the plan. Each refusal is a
// *mediagate.Error of KindInvalid that names the field and the rule, always
// the first one in the order of the schema, so that the same body gets the
// same answer every time.
//
// What is known to be wrong with a file is found by Load and not by a
// request: schemas are compiled, and each combination of values that a price
// or an upstream value depends on must have its row.
//
// The package does no I/O but reading its files. It imports the module root,
// billing and outbound (the syntax of media URLs) and must not know
// providers, storage, HTTP or Temporal.
package catalog
