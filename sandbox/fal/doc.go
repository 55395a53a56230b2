// Package fal plays the queue API of fal, with two of its models: images of FLUX.1
// [schnell] and videos of LTX 2.3.
//
// The vendor takes any request and runs it: what a model refuses is the result of its
// job, which is completed as every other. A job is asked for by the path of its app, less
// what is below it. A job that its customer stopped is completed with an error, and a job
// that runs can be stopped too.
package fal
