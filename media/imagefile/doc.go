// Package imagefile copies pictures and leaves out what does not show.
//
// Clean reads a JPEG, PNG, GIF or WebP once, from its first byte to the last,
// and follows its structure: segments, chunks or blocks, their lengths and
// checksums. What breaks the structure, goes on after the end, or asks its
// reader for too much is refused; of what is no picture nothing is copied:
// EXIF, XMP, comments, texts, previews, what follows the end of a JPEG, and
// whatever is not known. The data of
// the pixels is copied as it is and never decoded.
//
// Two things are kept beside the picture, since it would look different without
// them: the colour profile, and of EXIF the orientation alone.
//
// Clean holds some tens of kilobytes of a file, whatever its size. The package
// imports nothing of the project.
package imagefile
