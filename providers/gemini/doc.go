// Package gemini is the adapter of the image models of Google's Gemini API.
//
// The vendor answers in the submitting call. The answer holds the image as base64 and may have tens
// of megabytes, so the adapter streams it into the job's sink. One call makes one image, so a
// request for several images takes as many calls. The vendor keeps no job that could be polled.
// Reference images travel in the request as bytes.
//
// The facts come from the API reference and Google's own Go client. The limit on inline data comes
// from a secondary source.
package gemini
