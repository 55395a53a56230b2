// Package openai plays OpenAI's API as far as it speaks: one call whose answer
// is the sound, as long as the text takes to say, made while it is sent. WAV and
// PCM hold a tone, the other formats silence, Opus and FLAC a second of it.
//
// The time of a directive's duration passes before the first byte, download is
// the time that the sound takes to come. Failures at poll strike when the first
// byte would be due: moderation and reject are refusals, internal an error of
// the server's, timeout no answer. At download, internal breaks the sound off in
// the middle, and timeout lets it stop there; the others are as at poll. An
// account with a limit of calls at once answers 429 beyond it; one whose key is
// KEY@broke has no money.
package openai
