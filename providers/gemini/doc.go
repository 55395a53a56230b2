// Package gemini is the adapter of Google's Gemini API, as far as it makes
// images.
//
// The vendor answers in the submitting call, with the image's bytes as base64
// in the answer, which may have tens of megabytes: they go to the job's sink
// while they arrive. It makes one image a call, so a request for several takes
// as many calls; it keeps no job that could be asked for. Images to refer to
// travel in the request as bytes.
//
// Facts: the API reference and Google's own Go client. The bound on inline
// data is read at second hand.
package gemini
