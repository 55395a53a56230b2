// Package fal plays the queue API of fal with two of its models: images of FLUX.1 [schnell] and
// videos of LTX 2.3.
//
// The vendor accepts any JSON object and runs it. If the model refuses the request, the job is
// completed like any other, and the refusal is its result. A job is polled below the path of its
// app, which is the first two parts of the model's name: fal-ai/flux for fal-ai/flux/schnell. A
// customer can cancel a queued or running job. The job is then completed with an error.
package fal
