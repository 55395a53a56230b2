// Package sound makes small, valid sound files of any length: MP3 and WAV. It
// owns the bytes only; memory does not depend on how far a file is padded.
//
// It imports the standard library only.
package sound
