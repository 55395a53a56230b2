// Package catalog knows the models and what can be asked of them: what a
// request may hold, what it costs, and by which routes it can be produced.
//
// A model is one YAML file in models/. It says what the model is and lists its
// operations, one for each endpoint at which it can be asked for something. An
// operation has a JSON Schema (draft 2020-12), the one that clients can be
// shown, since it is the one that judges their requests; named checks for what
// a schema cannot say; its prices, routes and limits. What schemas share stands
// in definitions.yaml. Files of a directory given to Load are laid over the
// built-in ones.
//
// Find tells from endpoint and body which operation is meant, as the table of
// endpoints says. Accept turns the body of a submit into a Request: the
// parameters with their defaults, in our words and no vendor's, with what chat
// messages say in the fields that they fold into; the charges, and the plan
// with all routes. Which of them can express the request is for their adapters
// to say. Each refusal is a *mediagate.Error of KindInvalid that names the
// field and the rule, always the first one in the order of the schema, so that
// the same body gets the same answer every time; its words follow from the
// keyword that the validator found broken, where it stands.
//
// What is known to be wrong with a file is found by Load and not by a
// request: schemas are compiled, and each combination of values that a price
// depends on must have its row. Whether adapters have what routes name is
// found at start, with Routes, Fields and Media.
//
// The package does no I/O but reading its files. It imports the module root,
// billing and outbound (the syntax of media URLs) and must not know
// providers, storage, HTTP or Temporal.
package catalog
