// Package vidu plays Vidu. The q3 models make videos from references, or from text and frames,
// depending on the model and the endpoint. A job is polled by the vendor's id and can be
// cancelled while it is queued.
//
// Each video has a marked copy beside the clean one, even if the request asks for none. Links
// work for a day, and each poll returns new ones. Images are links, which are not fetched.
package vidu
