// Package webhook makes one attempt to deliver a callback: it checks the URL, signs the body, sends
// it, and classifies the answer.
//
// It owns the signature scheme (Standard Webhooks) and the meaning of an answer.
// The caller decides when and how often to try again, how many attempts run at once, and what is
// stored about them: an attempt has no state.
//
// It imports the root package and outbound, and knows neither the storage
// nor the workflow engine.
package webhook
