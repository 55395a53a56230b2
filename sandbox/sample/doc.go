// Package sample makes small, valid media files of any size and length: H.264
// video in MP4 with an optional AAC track, PNG images, grids of four pictures in
// PNG, JPEG and WebP, a tone as WAV and silence as MP3.
//
// It owns the bytes only. The picture is a row of colour bars that move once
// a second, coded with the few macroblock kinds that need no transform, so
// that a file costs a millisecond and is the same on every machine; no
// external encoder is asked. Padded grows a file, and Extended a sound, to a
// wanted number of bytes without holding them in memory.
//
// It imports the standard library only.
package sample
