// Package dashscope is the adapter for Alibaba's DashScope (Model Studio).
//
// One operation exists: "image", a synchronous text to image call. The answer
// to the submission holds the file, and the vendor keeps nothing that could
// be asked for later: when the answer is lost, so is the job, and the error
// says KindAmbiguous. Whether to pay for another one is not decided here.
//
// It imports the root package, providers and vendorhttp, nothing else of this module.
package dashscope
