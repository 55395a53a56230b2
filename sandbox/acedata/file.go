package acedata

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mediagate/mediagate/sandbox/kernel"
	"github.com/mediagate/mediagate/sandbox/sample"
	"github.com/mediagate/mediagate/sandbox/sound"
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
		return sound.Padded(sound.MP3(lengthOf(j, i)), j.Directive.ResultBytes), "audio/mpeg", true
	case "song.wav":
		return sound.Padded(sound.WAV(lengthOf(j, i)), 0), "audio/wav", true
	case "stems.zip":
		return sound.Padded(packed(j), 0), "application/zip", j.Endpoint == producer && j.Detail["action"] == stems
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
			_, err = entry.Write(sound.MP3(lengthOf(j, i)))
		}
		if err != nil {
			return nil // a buffer takes all
		}
	}
	_ = w.Close()
	return out.Bytes()
}

// derived is an id that follows from another one.
func derived(id, what string) string {
	sum := sha256.Sum256([]byte(id + "\x00" + what))
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

func clipID(j *kernel.Job, i int) string { return derived(j.ID, "clip "+strconv.Itoa(i)) }

// half is how much of an upload's id is random; the rest proves whose it is.
const half = 18

func uploadID(key, api string) string {
	id := kernel.UUID()[:half]
	return id + derived(id, api+" "+key)[half:]
}

func uploadedBy(key, api, id string) bool {
	return len(id) > half && id == id[:half]+derived(id[:half], api+" "+key)[half:]
}

const (
	fetchTimeout = 20 * time.Second
	fetchMax     = 50 << 20
)

// upload fetches a sound.
func (v *acedata) upload(r *http.Request, c caller, api string) kernel.Reply {
	in, err := kernel.ReadObject(r, bodyMax)
	if err != nil {
		return refuse(kernel.CallOther, badRequest, err.Error())
	}
	in.Only("audio_url")
	link := in.Link("audio_url")
	if in.Err() == nil {
		if err := fetch(r.Context(), link); err != nil {
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

// fetch reads a file whole, and says why it is none to work on.
func fetch(ctx context.Context, link string) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil) //nolint:gosec // to fetch what a customer names is what it is for
	if err != nil {
		return errors.New("cannot be fetched")
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req) //nolint:gosec // as above
	if err != nil {
		return errors.New("cannot be fetched")
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("cannot be fetched: HTTP %d", resp.StatusCode)
	}
	head := make([]byte, 16)
	n, _ := io.ReadFull(resp.Body, head)
	if _, ok := sound.Kind(head[:n]); !ok {
		return errors.New("is not a valid audio")
	}
	size, err := io.Copy(io.Discard, io.LimitReader(resp.Body, fetchMax))
	switch {
	case err != nil:
		return errors.New("cannot be fetched")
	case size == fetchMax:
		return errors.New("is too large")
	}
	return nil
}
