package acedata

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// The supported actions. The vendor has more.
const (
	generate = "generate"
	artist   = "artist_consistency"
	remaster = "remaster"
	allStems = "all_stems"
	stems    = "stems"
	replace  = "replace_section"
)

var defaults = map[string]string{suno: "chirp-v4", producer: "FUZZ-2.0"}

const unknownSong = "The song id does not exist or has been taken offline."

// job returns the job of a request of the account.
func (v api) job(a kernel.Account, b kernel.Body) (*kernel.Job, error) {
	if id := b.Text("persona_id"); id != "" && !v.voice(a, id) {
		return nil, kernel.NewViolation("persona_id", "does not exist")
	}
	action := cmp.Or(b.Text("action"), generate)
	var source song
	if action != generate {
		var ok bool
		if source, ok = v.song(a, b.Text("audio_id")); !ok {
			return nil, kernel.NewViolation("audio_id", unknownSong)
		}
	}
	media := kernel.Media{Kind: "audio", Seconds: songSeconds, Songs: max(1, len(tracksOf[action]))}
	if source.seconds > 0 {
		media.Seconds = int(source.seconds)
	}
	title := cmp.Or(b.Text("title"), source.title, "Untitled")
	end := b.Number("replace_section_end")
	switch {
	case action == replace && end <= b.Number("replace_section_start"):
		return nil, kernel.NewViolation("replace_section_end", "must be after the start")
	case action == replace && source.seconds > 0 && end > source.seconds+1:
		return nil, kernel.NewViolation("replace_section_end", "is beyond the end of the song")
	case action == remaster:
		title += " (Remastered)"
	case v.Endpoint == suno && (action == generate || action == artist):
		media.Songs, media.SecondLonger = 2, true
	}
	prompt, about := b.Text("prompt"), b.Text("lyric_prompt")
	lyric := cmp.Or(b.Text("lyric"), source.lyric)
	if lyric == "" && about != "" {
		lyric = "[Verse]\n" + about
	}
	return &kernel.Job{
		ID: kernel.UUID(), CallbackURL: b.Text("callback_url"),
		Model: cmp.Or(b.Text("model"), defaults[v.Endpoint]), Media: media,
		Prompt: kernel.DirectiveText(prompt, b.Text("lyric"), about, b.Text("style"), b.Text("title")),
		Detail: map[string]string{
			"action": action, "title": title, "lyric": lyric, "style": cmp.Or(b.Text("style"), source.style), "prompt": prompt,
			"seed": cmp.Or(b.Text("seed"), "2450882164"),
		},
	}, nil
}

// lyricTimes returns the start and end of each line of the lyrics, in equal steps.
func lyricTimes(lyric string, seconds float64) [][2]float64 {
	lines := strings.Split(lyric, "\n")
	out := make([][2]float64, len(lines))
	step := seconds / float64(len(lines))
	for i := range lines {
		out[i] = [2]float64{float64(i) * step, float64(i+1) * step}
	}
	return out
}

// formatLength returns the length of a song in the format of the API.
func formatLength(endpoint string, seconds float64) any {
	if endpoint == producer {
		return fmt.Sprintf("%.10f", seconds)
	}
	return seconds
}
