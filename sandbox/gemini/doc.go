// Package gemini plays the part of Google's Gemini API that makes images. A call lasts until the
// image is ready. Its answer contains the image in base64, which is generated while the answer
// is sent.
//
// The vendor accepts the fields that adapters send: one turn of texts and images, and the shape
// and size of the image.
//
// A failure at poll happens when the image would be ready: moderation appears as a finish
// reason, and reject as a text without an image. A failure at download happens then too, because
// the answer is the download, but a timeout at download cuts the answer in the middle of the
// image. Moderation at submit appears as a block reason. Of these answers, those that report
// moderation or a rejection have HTTP 200.
package gemini
