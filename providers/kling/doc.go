// Package kling is the adapter for Kling AI, in the vendor's older API
// generation: a model_name in the body, /v1/videos/ in the path.
//
// Three operations exist. "video" goes to text2video, or to image2video when
// the request has images. The others go to omni-video: "omni_frames" for
// subjects, with images as frames, "omni" with images as references. Ids belong
// to the endpoint that made them, so a reference's state names it.
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
