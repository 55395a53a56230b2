// Package vidu is the adapter of Vidu's video API. Its operation reference makes
// a video of what is in one to seven images; base_video takes requests for
// models that we know nothing of, whose images are the first frame, or the first
// and the last, or from three on references.
//
// A job is found by the vendor's id only; our own id travels as the payload,
// which the vendor gives back with each answer. What has not begun can be
// stopped. The vendor queues what exceeds an account's slots.
//
// The links of a result work for a day, each poll gives new ones. A marked
// copy is offered beside the clean file whether or not it was asked for; a
// reference's state tells which one was.
//
// An error has a name, which stands in a refusal and with a failed job alike.
// The table goes by that name: HTTP 400 comes with an empty purse and with
// refused content as well as with a wrong field.
//
// Facts: Vidu's API reference. Where it is silent or read at second hand, the
// line says so.
package vidu
