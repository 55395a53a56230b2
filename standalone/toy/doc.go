// Package toy holds the test that adds a vendor and a model to a copy of the
// tree by following docs/adding-a-provider.md and docs/adding-a-model.md, and
// runs one task to its end on the standalone program that comes of it. Whoever
// adds a real one may start from its files, in testdata.
package toy
