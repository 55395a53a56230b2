// Package worker registers workflows and activities on their task queues, each with its own
// number of slots, and runs them until its context ends. It contains no logic of the durable
// path.
//
// It imports workflows, activities and internal/limit.
package worker
