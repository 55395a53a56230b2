// Package acedata plays AceData Cloud's music APIs: /suno with songs, remasters,
// tracks, replaced sections, uploads and personas, /producer with songs, tracks,
// replaced sections and uploads. Calls that block until the song is there are not
// played: async is required.
//
// A song is known to the account that made it, by the API that did. An upload is
// fetched, and must be a sound; its id tells by itself whose it is, so that
// uploads leave no jobs behind. While a task works its answer shows previews.
//
// A song of /producer carries the fields of its native shape too, and its tracks
// come in one archive.
package acedata
