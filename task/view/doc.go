// Package view shows a task as its readers see it: the unified shape of
// answers, lists and callbacks, the older image poll, and the messages of
// failures in the readers' languages.
//
// The package decides nothing and makes no calls: it computes a view from a task and the signed
// links of its files. It imports the root package only.
package view
