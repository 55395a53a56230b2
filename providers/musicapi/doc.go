// Package musicapi is the adapter of MusicAPI.ai: songs from a sample of another
// song, by the vendor's Sonic API.
//
// A song that the account made is named by its own id; any other is fetched by
// the vendor from its link, within the call that submits. A job is found by the
// vendor's id alone, and no answer about it carries that id: a renewed key proves
// nothing by it.
//
// Errors come with the HTTP status, and 403 is told apart by its words: money,
// content, the form of the lyrics. A query may find a job not ready, which has
// no songs to tell of yet, or over time, which is HTTP 504.
//
// Facts: the vendor's guides (modes, models and their bounds, states, the table
// of errors), and what its customers have seen of the answers: no code beside
// the id of a new job, not_ready, failed, lengths as texts, no film. Assumed,
// since neither shows it: that the bounds of a new song hold for one from a
// sample; that a song's lyrics may be a space; where the words of a failure
// stand.
package musicapi
