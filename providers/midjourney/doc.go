// Package midjourney is the adapter of the midjourney-proxy protocol. Midjourney has no official
// API, so programs that hold accounts there pass jobs on. The vendor of this adapter is such a
// proxy, and a channel's base URL names it.
//
// A channel's option dialect selects one of two dialects. "trueai", the default, is the larger one:
// it presses any button, a job may wait for a mask or words (the status MODAL), jobs can be
// cancelled, and the speed is part of the path. "novicezk" is the original: it upscales, varies and
// redraws by number, shows no buttons, and takes the speed in the prompt. For novicezk the adapter
// returns the buttons that trueai would show, so clients press buttons in the same way for both.
//
// The operations are "imagine", which makes four pictures from a prompt; "blend", which makes them
// from two to four images; "describe", which makes texts from one image; "action", which presses a
// button of an earlier job; and "modal", which gives a waiting job its mask or words. The waiting
// job goes on under the same id.
//
// Our id travels as the job's state. The proxy shows the state but cannot find a job by it. After a
// modal, the status stays MODAL while the job queues, so a poll does not show whether the mask or
// words arrived. In both cases a lost answer leaves the submission unknown.
//
// A proxy answers nearly everything with HTTP 200 and its own code. It shows drafts under the link
// of the result, so the adapter uses the link only when the job has succeeded. Links expire, and
// each poll returns fresh ones.
//
// The facts come from the sources of both programs. The adapter does not support variants of
// resellers.
//
// The package imports the root package, providers, inline and vendorhttp, and nothing else of this
// module.
package midjourney
