// Package acedata is the adapter of AceData Cloud's music APIs, of which there
// are two of one make: /suno for songs, remasters, stems, replaced sections and
// voices, /producer for songs, stems and replaced sections by instruction. An
// operation belongs to one of them, and so does each job.
//
// A song that an account made is named by its id there. One that somebody else
// made is uploaded first, by its link; the upload makes no job and may be
// repeated. A voice is an upload, and a persona of it, which is answered at once.
//
// A job is found by the vendor's id only, which tells of many at once. The state
// of a task can be empty: then its response tells, whose songs have states of
// their own. While one of them is still being made its file is a preview, never a
// result.
//
// An error has a code. What the content is refused for comes as bad_request or
// forbidden with words that say so; the words are looked at for that only.
//
// Facts: the vendor's integration guides and its OpenAPI documents. Where they
// are silent or contradict each other, the line says so.
package acedata
