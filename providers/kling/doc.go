// Package kling is the adapter for Kling AI, in the vendor's older API
// generation: a model_name in the body, /v1/videos/ in the path.
//
// Two operations exist. "video" goes to text2video, or to image2video when
// the request has images; "omni" goes to omni-video. Ids belong to the
// endpoint that made them, so a JobRef remembers it.
//
// Each job carries our own external_task_id, which the vendor keeps unique an
// account and finds jobs by. That makes a lost answer harmless: whoever got
// KindAmbiguous looks the job up, or submits the same id again and is told
// that it exists. The vendor offers no way to cancel.
//
// It imports the root package and vendorhttp, nothing else of this module.
package kling
