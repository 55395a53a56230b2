// Package mediainfo reads the type of a media file from its first bytes, and width, height and
// duration from its headers. It measures the duration of most audio from the data itself.
//
// A Probe reads a file while it is copied elsewhere, and reports afterwards whether the headers were
// valid. Inspect reads a file only as far as it must and explains why a file is invalid.
//
// Both hold a limited part of a file, trust no size that a file states, and return zero for unknown
// values. The package imports imagefile, which checks pictures, and nothing else of the project.
package mediainfo
