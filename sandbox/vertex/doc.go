// Package vertex plays Google's Vertex AI as far as it makes videos with Veo.
//
// A customer is a service account of the project sandbox-project at us-central1,
// whose key is service_account.json; {sandbox} in it stands for the sandbox's
// own address. Access tokens are made at /vertex/token and last an hour.
//
// The answer about an operation that is done holds its videos, which are made
// while they are sent. So each such answer counts as a download: timeout there
// cuts it in the middle, and the other failures at download are as at poll.
// Moderation at poll is told by a count of videos that were held back, as is the
// directive filtered.
//
// Of a request, what concerns text and frames is known; frames are bytes, not
// files of a bucket.
package vertex
