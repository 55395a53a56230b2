// Package picture cuts a picture into quarters without losing a pixel or a bit
// of one.
//
// It is the one place where a whole picture is in memory: Sides tells, from
// the beginning of a file, how many pixels that will be, and Decode holds at most
// BytesPerPixel for each. Whoever calls bounds both. The package imports nothing
// of the project.
package picture
