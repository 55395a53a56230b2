// Package sandbox plays the vendors: an HTTP server that speaks their protocols. The real
// adapters run against it unchanged. It refuses invalid requests as the vendors do, and returns
// media that players open. It is for development and tests.
//
// The package owns the table of vendors. Each vendor is a folder. The folder exports the vendor,
// with its customer account and the channel by which a gateway reaches it. Package kernel holds
// the code that the folders share. Of this module, the folders import only kernel, sample and
// googleapi. They must not import the adapters, which would then be tested against themselves.
//
// # Paths
//
// Each vendor lives below its name, for example /kling/v1/videos/…, /dashscope/api/v1/…,
// /minimax/v1/… and /minimax/v2/…, /gemini/v1beta/…, /vertex/v1/…, /veo/v1beta/…, /vidu/ent/v2/…
// and /fal/{model}. Files are at /media/…, and the control endpoints at /_sandbox/…. Links in
// answers name the host that the caller used.
//
// # Strictness
//
// A vendor's rules are JSON Schemas, one for each operation, beside the vendor's code:
// kling/schema/*.yaml. They are written from the vendor's protocol and list the fields that
// adapters send. Any other field is refused. Some rules do not fit into a schema, such as sums
// over fields, the contents of a picture and the account's own songs. The functions that create
// a request's job check these in Go and return kernel.NewViolation. Both kinds of rules produce
// a *kernel.Violation, which names the field. The vendor's refuse function puts the violation into
// the vendor's envelope with the vendor's code for it.
//
// Pictures and videos given as URLs are not fetched, and so not checked. If the shape of such a
// picture decides the shape of a video, the video is 16:9.
package sandbox
