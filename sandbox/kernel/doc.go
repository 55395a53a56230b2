// Package kernel holds the code that the sandbox's vendors share: the journal of jobs and calls,
// the customer accounts, the directives, the files and the control endpoints. A vendor's folder
// states its rules in Schemas and its errors in FaultTexts. An API does the rest: it reads requests,
// creates jobs, shows them and cancels them.
//
// The package knows no vendor. Of this module it imports only sample.
//
// # Journal
//
// The journal is a bbolt database in Config.Dir. A job, and every call, is written to it before
// the answer leaves. So a caller that has seen a job finds it again after this process was
// killed, and a caller that got no answer can count the jobs that exist. A job's state is
// computed from its creation time and is never stored. The journal does store that a customer
// cancelled, removed or resumed a job. The time of a resumed job counts from then.
//
// A job is dropped at the earliest ten minutes after its end, and only if 10,000 newer jobs
// exist.
//
// # Ids
//
// An external id is unique within an account, across all endpoints of the vendor. A job's id is
// valid only under the endpoint that created the job.
//
// # Accounts
//
// A job is visible only to the account that created it. Each api_key, access_key and api_secret
// has variants: KEY~TEXT is another key of the same account, KEY@NAME is a key of another
// account, and KEY@NAME~TEXT is another key of that account.
//
// # Directives
//
// A prompt may hold one directive, [[sandbox: key=value, …]]. A well-formed submission without
// one takes the oldest directive that POST /_sandbox/next has stored for the vendor. A directive
// that cannot be parsed is refused as an invalid parameter.
//
//   - duration=3s: how long the job takes (0 to 720h; a bare number is
//     seconds). Default 2 s for videos and songs, 200 ms for images, and none
//     for speech.
//   - fail=moderation|internal|timeout|reject and at=submit|poll|download: the
//     failure, and the step at which it happens. Without at, reject and timeout
//     happen at submit, the others at poll.
//   - times=N: how many calls fail, for an internal error at poll or any failure
//     at download. Default 3 for internal, otherwise every call.
//   - result_bytes=N: the file is padded to N bytes. A longer file stays as it
//     is. The padding has at least 8 (MP4) or 12 (PNG) bytes.
//   - filtered=N: N of several results are held back for their content, if the
//     vendor makes several at once.
//   - media=none|empty|page|elsewhere: the job succeeds, but the answer names no
//     link, the file is empty or a page of HTML, or the download redirects to
//     another host.
//   - piece=N: media, or a failure at download, applies to the Nth file only.
//   - download=40s: the file is sent in even pieces over that time (up to 1h).
//   - answer=2s: the submission is answered that long after the job was created
//     (up to 1m).
//   - callback=none|late|flood: no callbacks, callbacks 3 s late, or callbacks
//     without a pause from the submission to the end.
//   - progress=N: the progress that a vendor shows (midjourney), instead of the
//     share of the time that has passed.
//   - ref=TEXT: a name by which the job can be found.
//
// At submit, moderation, reject and internal return that error and create no job. timeout
// creates the job and sends no answer: the connection stays open until the caller leaves, a
// minute at most, and is then cut.
//
// At poll, moderation and reject end the job as failed. internal answers polls with a server
// error. With timeout, the job never ends. If a vendor answers in the submitting call, that call
// is the poll: the job is created, and the call fails when the job's time is over.
//
// At download, moderation answers 404, reject 403 and internal 500; timeout sends half of the
// file and then stalls. If the vendor's answer holds the file, download and result_bytes apply
// to the answer. timeout then sends half of the answer, and the other failures happen as at
// poll.
//
// # Finding jobs
//
// GET /_sandbox/jobs?reference=TEXT matches a job's id, its external id (also with a suffix),
// its directive's ref, or any part of its prompt.
package kernel
