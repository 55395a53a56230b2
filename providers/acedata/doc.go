// Package acedata is the adapter of AceData Cloud's two music APIs. /suno makes songs, remasters,
// stems and voices, and replaces a section of a song by new lyrics. /producer makes songs and stems,
// and replaces a section by what an instruction asks for. Each operation, and so each job, belongs to
// one of the two APIs.
//
// A request names a song of the same account by the vendor's id. The adapter uploads any other song
// first, by its link. An upload starts no job and may be repeated. A voice takes two calls: an
// upload, and a persona made from it, which the vendor returns at once.
//
// The vendor finds a job only by the vendor's id, and answers for many jobs in one call. If the state
// of a task is empty, its response decides, and each song in the response has its own state. While a
// song is still being made, its file is a preview and never a result.
//
// Every error has a code. A refusal of content has the code bad_request or forbidden, which other
// errors share, so the adapter recognizes the refusal by the words of its message.
//
// The facts come from the vendor's integration guides and its OpenAPI documents. A comment marks
// each place at which these are silent or contradict each other.
package acedata
