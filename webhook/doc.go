// Package webhook makes one attempt to deliver a callback: it judges the
// URL, signs the body, sends it, and says what the answer means. It also keeps
// the places of a process for attempts under way, so that receivers which are
// slow or silent hold no more than a share.
//
// It owns the signature scheme (Standard Webhooks), the meaning of an answer, and
// who may send when many would. When to try again, how often, and what is stored
// about it are the caller's business: an attempt has no memory, and who finds no
// place is told when to come back.
//
// It imports the root package and outbound, and knows neither the storage
// nor the workflow engine.
package webhook
