// Command recordhistories runs the gateway's workflows on a real Temporal
// service, in a temporary folder, and writes their histories to files. The
// tests of workflows replay those: a change of the workflows that could not
// go on with runs that are under way fails them.
//
// The activities are the real ones; what they reach out to are the doubles of
// activitytest, so that nothing but Temporal is needed. Record anew only from
// code that has landed, and only when workflow.GetVersion cannot bridge a
// change.
package main
