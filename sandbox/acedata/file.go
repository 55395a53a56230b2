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

// songSeconds is how long a song plays that is not made of another.
const songSeconds = 16

// file makes one of a job's files.
func file(j *kernel.Job, name string) (*io.SectionReader, string, bool) {
	stem, kind, _ := strings.Cut(name, ".")
	what, number, _ := strings.Cut(stem, "-")
	i, err := strconv.Atoi(number)
	if err != nil || i < 0 || i >= len(clips("", j, "succeeded")) {
		return nil, "", false
	}
	switch what + "." + kind {
	case "song.mp3":
		return sample.Extended(sample.MP3(lengthOf(j, i)), j.Directive.ResultBytes), "audio/mpeg", true
	case "song.wav":
		return sample.WAV(lengthOf(j, i)), "audio/wav", true
	case "stems.zip":
		return sample.Padded(packed(j), 0), "application/zip", j.Endpoint == producer && j.Detail["action"] == stems
	case "cover.png":
		return sample.Padded(sample.Image(j.Media.Width, j.Media.Height), 0), "image/png", true
	case "film.mp4":
		film := sample.Video(sample.VideoSpec{Width: j.Media.Width, Height: j.Media.Height, Seconds: j.Media.Seconds, Sound: true})
		return sample.Padded(film, 0), "video/mp4", true
	default:
		return nil, "", false
	}
}

// packed are the tracks of a job in one archive.
func packed(j *kernel.Job) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i, name := range tracksOf[stems] {
		entry, err := w.Create(strings.ToLower(name) + ".mp3")
		if err == nil {
			_, err = io.Copy(entry, sample.MP3(lengthOf(j, i)))
		}
		if err != nil {
			return nil // a buffer takes all
		}
	}
	_ = w.Close()
	return out.Bytes()
}

func clipID(j *kernel.Job, i int) string { return kernel.Derived(j.ID, "clip "+strconv.Itoa(i)) }

// half is how much of an upload's id is random; the rest proves whose it is.
const half = 18

func uploadID(key, api string) string {
	id := kernel.UUID()[:half]
	return id + kernel.Derived(id, api+" "+key)[half:]
}

func uploadedBy(key, api, id string) bool {
	return len(id) > half && id == id[:half]+kernel.Derived(id[:half], api+" "+key)[half:]
}

// upload fetches a sound.
func (v *acedata) upload(r *http.Request, c caller, api string) kernel.Reply {
	in, err := kernel.ReadObject(r, bodyMax)
	if err != nil {
		return refuse(kernel.CallOther, badRequest, err.Error())
	}
	in.Only("audio_url")
	link := in.Link("audio_url")
	if in.Err() == nil {
		if err := kernel.FetchSound(r.Context(), link); err != nil {
			in.Fail("audio_url", "%s", err)
		}
	}
	if in.Err() != nil {
		return refuse(kernel.CallOther, badRequest, in.Err().Error())
	}
	return kernel.Reply{Kind: kernel.CallOther, Status: http.StatusOK, Body: map[string]any{
		"success": true, "task_id": kernel.UUID(), "data": map[string]any{"audio_id": uploadID(c.key, api), "lyric": ""},
	}}
}
