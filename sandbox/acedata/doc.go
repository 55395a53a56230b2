// Package acedata plays the music APIs of AceData Cloud: /suno with songs, remasters, tracks,
// replaced sections, uploads and personas, and /producer with songs, tracks, replaced sections
// and uploads. Calls that block until the song is finished are not supported: async is required.
//
// A song is known only to its account and to the API that made it. An upload is fetched and must
// be a sound. The id of an upload encodes its owner, so an upload needs no job. While a task
// runs, its answer shows previews.
//
// A song of /producer also has the fields of its native format. Its tracks come in one archive.
package acedata
