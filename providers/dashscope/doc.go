// Package dashscope is the adapter for Alibaba's DashScope (Model Studio), which
// serves models of its own and of others in one envelope.
//
// The operation "image" is a synchronous text to image call. The answer to the
// submission holds the file, and the vendor keeps nothing that could be asked
// for later: when the answer is lost, so is the job, and the error says
// KindAmbiguous. Whether to pay for another one is not decided here.
//
// All others make videos, by jobs that are asked for during 24 hours:
//
//   - "video": Wan's older protocol. The model is the upstream's, for text, for a
//     first frame or for references, whichever the inputs want.
//   - "video_v2": Wan's newer protocol, which has a last frame, and a first one
//     beside references.
//   - "edit": Wan's video edit.
//   - "kling" and "kling_omni": Kling's models, without and with subjects.
//   - "vidu": Vidu's reference to video.
//   - "base_video": any of these protocols, by the model's name.
//
// A job that is older, or that the account does not have, is UNKNOWN to the
// vendor, which is KindNotFound here. No job can be found by our own id.
//
// It imports the root package, providers and vendorhttp, nothing else of this module.
package dashscope
