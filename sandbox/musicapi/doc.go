// Package musicapi plays the part of MusicAPI.ai's Sonic API that makes songs from a sample of
// another song. Each request makes two. Errors have an HTTP status. A queued job is reported as
// not ready. No answer about a job contains the job's id.
package musicapi
