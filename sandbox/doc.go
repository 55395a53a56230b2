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
// Besides the rules that the vendors state, unknown fields are refused.
// Media given as URLs are not fetched, so that they are not judged; a video
// whose shape such a picture decides is 16:9. Callback URLs are taken and
// never called.
package sandbox
