// Package dashscope is the adapter of Alibaba's DashScope (Model Studio), which serves its own
// models and those of other makers in one envelope.
//
// The operations "image" and "base_image" make an image from text in one synchronous call. The answer
// holds the link to the file, and the vendor keeps no job that could be polled. If the answer is lost,
// so is the job, and the error is KindAmbiguous. The caller decides whether to pay for another one.
//
// All other operations make videos. They start jobs, which the vendor remembers for 24 hours:
//
//   - "video": Wan's older protocol. The adapter adds the kind of the inputs to the upstream's
//     name: text, a first frame, or references.
//   - "video_v2": Wan's newer protocol. It also takes a last frame, and a first frame beside
//     references.
//   - "edit": Wan's video edit.
//   - "kling" and "kling_omni": Kling's models, without and with subjects.
//   - "vidu": Vidu's video from references.
//   - "base_video": any of these protocols, by the name of the model.
//
// The vendor answers UNKNOWN for a job that is older than that, or that the account does not have.
// Then the adapter returns KindNotFound. The vendor cannot find a job by the gateway's id.
//
// The package imports the root package, providers and vendorhttp, and nothing else of this module.
package dashscope
