// Package sandbox plays the vendors: an HTTP server that speaks their
// protocols closely enough for the real adapters to run against it
// unchanged, refuses what they refuse, and returns media that a player
// opens. It is for development and tests.
//
// It owns the table of vendors. Each vendor is a folder, which exports itself
// with the customer that it has here and the channel by which a gateway
// reaches it; kernel is what the folders share. None imports anything else of
// this module; it must not import the adapters, which would then be tested
// against themselves.
//
// # Paths
//
// Each vendor lives below its name: /kling/v1/videos/…,
// /dashscope/api/v1/…, /minimax/v1/… and /minimax/v2/…, /gemini/v1beta/…,
// /vertex/v1/…, /veo/v1beta/…, /vidu/ent/v2/…, /fal/{model}; files are at /media/…, control
// at /_sandbox/…. Links are made for the host that the caller used.
//
// # Strictness
//
// A vendor's rules are JSON Schemas, one an operation, beside the fake: kling/schema/*.yaml.
// They are written from the vendor's protocol and know the fields that adapters send; any
// other field is refused. What no schema can state is a line of Go in the request's Job
// method, which returns kernel.Wrong: sums over fields, the contents of a picture, the
// account's own songs. Both arrive as a *kernel.Violation, which names the field, and the
// vendor's refuse puts it into the vendor's envelope with the code that the vendor has for
// it.
//
// Media given as URLs are not fetched, so that they are not judged; a video
// whose shape such a picture decides is 16:9.
package sandbox
