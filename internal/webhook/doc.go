// Package webhook makes one attempt to deliver a callback: it judges the
// URL, signs the body, sends it, and says what the answer means.
//
// It owns the signature scheme (Standard Webhooks) and the meaning of an answer.
// When to try again, how often, how many at once, and what is stored
// about it are the caller's business: an attempt has no memory.
//
// It imports the root package and outbound, and knows neither the storage
// nor the workflow engine.
package webhook
