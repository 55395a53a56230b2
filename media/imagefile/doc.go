// Package imagefile copies pictures without their invisible data.
//
// Clean reads a JPEG, PNG, GIF or WebP once, from its first byte to the last. It follows the
// structure of the file: segments, chunks or blocks, their lengths and checksums. It refuses a file
// that breaks the structure, goes on after the end, or needs too much of its reader. It does not copy
// EXIF, XMP, comments, texts, previews, bytes after the end of a JPEG, or anything unknown. The data
// of the pixels is copied as it is and never decoded.
//
// Clean keeps the colour profile and the orientation of EXIF, since the picture would look different
// without them.
//
// Clean holds some tens of kilobytes of a file, whatever its size. The package
// imports nothing of the project.
package imagefile
