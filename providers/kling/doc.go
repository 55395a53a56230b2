// Package kling is the adapter of Kling AI, in both generations of the vendor's API. A channel's
// option generation selects the one for new jobs. legacy has a model_name in the body and
// /v1/videos/ in the path. v2 has the operation and the model in the path; see newer.go and
// newer_answer.go.
//
// The operation "video" goes to text2video, or to image2video if the request has images.
// "base_video" is the same for requests of the base contract. The other operations go to
// omni-video: "omni_frames" has subjects, and images as frames, and "omni" has images as
// references. In the older generation an id is valid only at the endpoint that made it, so the
// State of a reference names the endpoint. The newer generation has one place for all jobs.
//
// omni-video has no fields for subjects by name or for a negative prompt. The adapter sends
// pictures of such subjects, to which the prompt refers, and adds the negative prompt to the
// prompt. The code is in text.go.
//
// Each job carries our external_task_id, which is unique in a vendor account, and the vendor finds
// jobs by it. So a lost answer does no harm: after KindAmbiguous the caller looks the job up, or
// submits the same id again and learns that it exists. The vendor cannot cancel jobs.
//
// The package imports the root package, providers and vendorhttp, and nothing else of this module.
package kling
