package acedata

import (
	"archive/zip"
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/mediagate/mediagate/sandbox/kernel"
	"github.com/mediagate/mediagate/sandbox/sample"
)

// songSeconds is how long a song plays that is not made from another song.
const songSeconds = 16

// file makes the archive of tracks, which is the only file that the kernel cannot make.
func file(j *kernel.Job, name string) (*io.SectionReader, string, bool) {
	if name != "stems-0.zip" || j.Endpoint != producer || j.Detail["action"] != stems {
		return nil, "", false
	}
	return sample.Padded(zipTracks(j), 0), "application/zip", true
}

// zipTracks returns an archive with the tracks of a job.
func zipTracks(j *kernel.Job) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i, name := range tracksOf[stems] {
		entry, err := w.Create(strings.ToLower(name) + ".mp3")
		if err == nil {
			_, err = io.Copy(entry, sample.MP3(j.Media.Length(i)))
		}
		if err != nil {
			return nil // writing to a buffer cannot fail
		}
	}
	_ = w.Close()
	return out.Bytes()
}

func clipID(j *kernel.Job, i int) string { return kernel.DeriveID(j.ID, "clip "+strconv.Itoa(i)) }

// half is the length of the random part of an upload's id. The rest is computed from the owner.
const half = 18

func uploadID(owner, api string) string {
	id := kernel.UUID()[:half]
	return id + kernel.DeriveID(id, api+" "+owner)[half:]
}

func uploadedBy(owner, api, id string) bool {
	return len(id) > half && id == id[:half]+kernel.DeriveID(id[:half], api+" "+owner)[half:]
}

// upload fetches a sound and answers with its id.
func (v api) upload(r *http.Request, a kernel.Account) kernel.Reply {
	b, err := schemas.Read(r, "upload", bodyMax)
	if err == nil {
		err = kernel.FetchSound(r.Context(), b.Text("audio_url"))
	}
	if err != nil {
		return refuse(kernel.CallOther, kernel.Invalid, err)
	}
	return kernel.OK(kernel.CallOther, map[string]any{
		"success": true, "task_id": kernel.UUID(),
		"data": map[string]any{"audio_id": uploadID(a.ID(), v.Endpoint), "lyric": ""},
	})
}
