// Package view shows a task as its readers see it: the unified shape of
// answers, lists and callbacks, the older image poll, and the messages of
// failures in the readers' languages.
//
// It decides nothing and makes no calls: a view is made of a task and the signed
// links of its files. It imports the root package only.
package view
