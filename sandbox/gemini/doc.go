// Package gemini plays Google's Gemini API as far as it makes images: one
// call lasts until the image is there and answers with its bytes in base64,
// which are made while they are sent.
//
// Of a request, what concerns images is known: contents, the modalities, the
// shape and size of the image, thoughts, the search tool, safety settings.
// There is no Files API here, so that every file that a request names is one
// that the caller may not see.
//
// A directive that fails at poll strikes when the image would be ready:
// moderation is told as a finish reason, reject as a text without an image.
// One that fails at download does so too, for the answer is the download;
// timeout at download cuts the answer in the middle of the image. Moderation
// at submit is a block reason. All these answers but the cut one have HTTP 200.
package gemini
