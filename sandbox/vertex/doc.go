// Package vertex plays the part of Google's Vertex AI that makes videos with Veo.
//
// The customer is a service account of the project sandbox-project at us-central1. Its key is
// service_account.json, in which {sandbox} is replaced by the sandbox's address. POST
// /vertex/token issues access tokens, which are valid for an hour.
//
// The answer about a finished operation contains its videos, which are generated while the
// answer is sent. So each such answer counts as a download. A timeout at download cuts the
// answer in the middle, and the other failures at download happen as at poll. After moderation
// at poll, or with the directive filtered, the answer contains the number of videos that were
// held back.
//
// The vendor accepts the fields that concern text and frames. Frames are given as bytes, not as
// files of a bucket.
package vertex
