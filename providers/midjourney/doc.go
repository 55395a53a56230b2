// Package midjourney is the adapter of the midjourney-proxy protocol, by which
// programs that hold accounts of Midjourney's are asked: there is no official
// API. The vendor here is such a proxy; a channel says where it is.
//
// There are two dialects, chosen by a channel's option dialect. "trueai", the
// default, is the larger one: any button can be pressed, a job may come to wait
// for a mask or words (its word MODAL), jobs can be cancelled, and the speed is
// a part of the path. "novicezk" is the original: it upscales, varies and
// redraws by number, says nothing of buttons, and is told the speed within a
// prompt. The adapter offers its follow-ups as the buttons that the other one
// would show, so that whoever presses them need not know which it is.
//
// Operations: "imagine" makes four pictures of a prompt, "blend" of two to four
// images; "describe" makes texts of one; "action" presses a button of an
// earlier job, and "modal" tells a job that waits what it needs. The last goes
// on under the id that the job has already.
//
// Our own id travels as the job's state, which the proxy shows and finds nothing
// by. Nor can it be seen whether a job that waits was told: while it queues, its
// word stays MODAL. So a lost answer stays in doubt.
//
// A proxy answers nearly all with HTTP 200 and a code of its own, and shows
// drafts where the result will stand: a link counts once the job has
// succeeded. Its links expire; each poll gives fresh ones.
//
// Facts: the sources of both programs. What resellers make of the protocol is
// not looked at.
//
// It imports the root package, providers, inline and vendorhttp, nothing else
// of this module.
package midjourney
