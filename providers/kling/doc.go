// Package kling is the adapter for Kling AI, in both generations of the
// vendor's API. A channel's option generation says which one makes new jobs:
// legacy, with a model_name in the body and /v1/videos/ in the path, or v2, with
// operation and model in the path (newer.go, newer_answer.go).
//
// Three operations exist. "video" goes to text2video, or to image2video when
// the request has images. The others go to omni-video: "omni_frames" for
// subjects, with images as frames, "omni" with images as references. In the
// older generation ids belong to the endpoint that made them, so a reference's
// state names it; in the newer one there is a single place for all.
//
// omni-video knows neither subjects by name nor words to avoid. The adapter
// shows such subjects by their pictures, to which the prompt then refers, and
// adds the words to the prompt: text.go says how.
//
// Each job carries our own external_task_id, which the vendor keeps unique an
// account and finds jobs by. That makes a lost answer harmless: whoever got
// KindAmbiguous looks the job up, or submits the same id again and is told
// that it exists. The vendor offers no way to cancel.
//
// It imports the root package, providers and vendorhttp, nothing else of this module.
package kling
