// Package catalog knows the models and what clients can ask of them: what a request may hold,
// what it costs, and by which routes it can be produced.
//
// A model is one YAML file in models/. It describes the model and its operations, one for each
// endpoint at which the model can be used. An operation has a JSON Schema (draft 2020-12), which
// clients can read and which validates their requests; named checks for rules that a schema cannot
// express; and its prices, routes and limits. definitions.yaml holds what several schemas share.
// Load merges the files of a directory into the built-in ones.
//
// Find returns the operation for an endpoint and a body, by the table of endpoints. Accept turns
// the body of a submit into a Request: the parameters with their defaults, in our own form, with
// the contents of chat messages in the fields that they fold into; the charges; and a plan with
// all routes. The adapters decide later which of the routes support the request. Each refusal is
// a *mediagate.Error of KindInvalid that names the field and the rule. It is always the first
// problem in the order of the schema, so that the same body always gets the same answer.
//
// Load finds what is wrong with a file, so that no request fails because of it: it compiles the
// schemas, and requires a row of prices for each combination of values that a price depends on.
// Routes, Fields and Media let the start check that adapters have what routes name.
//
// The package does no I/O except reading its files. It imports the module root, catalog/price,
// media/mediainfo and internal/outbound (for the syntax of media URLs), and must not know
// providers, storage, HTTP or Temporal.
package catalog
