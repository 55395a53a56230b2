// Package rescue proves against a real Temporal service that runs which get
// nowhere are replaced (D1, D2): a worker with workflows that block or panic
// wedges them, a mended worker follows, and what they were to see through ends
// once. It has nothing but tests.
package rescue
