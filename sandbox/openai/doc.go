// Package openai plays the speech endpoint of OpenAI's API. The answer is the sound, as long as
// the text takes to speak, and is generated while it is sent. WAV and PCM contain a tone, MP3
// and AAC silence, and Opus and FLAC one second of silence.
//
// The directive duration delays the first byte. The directive download sets how long the sound
// takes to arrive. A failure at poll happens when the first byte is due: moderation and reject
// refuse the call, internal answers with a server error, and timeout sends no answer. At
// download, internal cuts the connection in the middle of the sound, and timeout stalls there
// first. The other failures at download happen as at poll.
//
// An account with a limit of concurrent calls answers 429 beyond it. The account of KEY@broke
// has no money.
package openai
