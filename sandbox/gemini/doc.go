// Package gemini plays Google's Gemini API as far as it makes images: one
// call lasts until the image is there and answers with its bytes in base64,
// which are made while they are sent.
//
// Of a request, what adapters send is known: one turn of texts and images, the shape and the
// size of the image.
//
// A directive that fails at poll strikes when the image would be ready:
// moderation is told as a finish reason, reject as a text without an image.
// One that fails at download does so too, for the answer is the download;
// timeout at download cuts the answer in the middle of the image. Moderation
// at submit is a block reason. All these answers but the cut one have HTTP 200.
package gemini
