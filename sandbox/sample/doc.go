// Package sample makes small, valid media files of any size and length: H.264 video in MP4 with
// an optional AAC track, PNG images, grids of four pictures in PNG, JPEG and WebP, a tone as PCM
// and WAV, and silence as MP3, AAC, Opus and FLAC.
//
// The package returns bytes and stores nothing. Its videos show a row of colour bars that move
// once a second. They use only the macroblock kinds that need no transform. So a video takes a
// millisecond to make, has the same bytes on every machine, and needs no external encoder.
// Padded grows a file, and Extended a sound, to a given number of bytes without holding them in
// memory.
//
// It imports the standard library only.
package sample
