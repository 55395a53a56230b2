// Package kernel is what the vendors of the sandbox share: the journal of jobs
// and calls, the customers, the directives, the files and the control
// endpoints. A vendor's folder states its rules in Schemas and its errors in Words. An API
// does the rest: it reads requests, makes jobs, tells of them and cancels them.
//
// It knows no vendor, and imports of this module only sample.
//
// # What is kept
//
// The journal is a bbolt database in Config.Dir. A job, and each call, is written to it
// before the answer, so a caller that was told of a job finds it after this process was
// killed, and one that was not told can count the jobs that exist. A job's
// state is computed from its time of creation and never stored; that its
// customer cancelled or removed it is, or told it what it waited for, from when
// on its time counts.
//
// A job that ended ten minutes ago is forgotten once 10,000 came after it.
//
// # Ids
//
// An external id is unique an account, over all endpoints of the vendor; an
// id is found under the endpoint that made it only.
//
// # Accounts
//
// A job is shown to the account that made it. Of each api_key, access_key or api_secret
// there are variants: KEY~TEXT is another key of the same account, KEY@NAME a
// key of another account, KEY@NAME~TEXT another one of that.
//
// # Directives
//
// A prompt may hold one directive, [[sandbox: key=value, …]]. Without one,
// the directive that POST /_sandbox/next left for the vendor is used up by
// the next well-formed submission (several wait in line). One that cannot be
// read is refused as an invalid parameter.
//
//   - duration=3s: how long the job takes (0 to 720h; a bare number is
//     seconds). Default 2 s for videos, 200 ms for images, and none for speech.
//   - fail=moderation|internal|timeout|reject and at=submit|poll|download.
//     Without at, reject and timeout strike at submit, the others at poll.
//   - times=N: how many calls an internal error at poll, or any failure at
//     download, spoils. Default 3 for internal, else every call.
//   - result_bytes=N: the file is padded to N bytes; a file that is longer
//     stays as it is, and padding is at least 8 (MP4) or 12 (PNG) bytes.
//   - filtered=N: of several results, N are held back for their content, by
//     vendors that make several at once.
//   - download=40s: the file is sent in even pieces over that time (up to 1h).
//   - progress=N: what vendors that show progress (midjourney) show, instead of
//     the share of the time that has passed.
//   - ref=TEXT: a name to find the job by.
//
// At submit: moderation, reject and internal answer so and make no job;
// timeout makes the job and gives no answer (the connection is held until
// the caller leaves, a minute at most, and then cut).
// At poll: moderation and reject end the job as failed; internal spoils
// polls with a server error; timeout never lets the job end. For a vendor
// that answers in the submitting call, that call is the poll: the job is
// made, and when its time is over the call fails so.
// At download: moderation answers 404, reject 403, internal 500; timeout
// sends half of the file and then nothing. Where the answer holds the file,
// download and result_bytes are about the answer: timeout sends half of it,
// the other failures are the vendor's as at poll.
//
// # Finding jobs
//
// GET /_sandbox/jobs?reference=TEXT matches a job's own id, its external id
// (also with a suffix), its directive's ref, or any part of its prompt.
package kernel
