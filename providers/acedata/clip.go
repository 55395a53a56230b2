package acedata

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// clip is a song, or one track of a song, in the shape of either API. Numbers may be strings.
type clip struct {
	ID        vendorhttp.Text `json:"id"`
	Title     vendorhttp.Text `json:"title"`
	Lyric     vendorhttp.Text `json:"lyric"`
	Style     vendorhttp.Text `json:"style"`
	State     vendorhttp.Text `json:"state"`
	Progress  vendorhttp.Text `json:"progress"`
	Duration  vendorhttp.Text `json:"duration"`
	CreatedAt vendorhttp.Text `json:"created_at"`
	Audio     vendorhttp.Text `json:"audio_url"`
	Image     vendorhttp.Text `json:"image_url"`
	Video     vendorhttp.Text `json:"video_url"`
	// These belong to the native shape of a /producer song, which the vendor may pass through.
	LyricsID vendorhttp.Text `json:"lyrics_id"`
	Timing   [][2]float64    `json:"lyrics_timing_markers"`
	WAV      vendorhttp.Text `json:"wav_url"`
	// Stems is the archive of all tracks, if a separation delivers one.
	Stems vendorhttp.Text `json:"stems_url"`
}

// hasFailed reports whether the vendor failed to make the song.
func (c clip) hasFailed() bool { return states[string(c.State)] == mediagate.JobFailed }

// successOutcome returns the outcome of a job whose songs have all ended. whole reports whether
// every song that the vendor could make has its file.
func successOutcome(ref mediagate.JobRef, clips []clip) (out *mediagate.Outcome, whole bool) {
	if ref.Operation == opStems || ref.Operation == opFlowStems {
		return tracksOutcome(ref, clips)
	}
	return songsOutcome(clips)
}

// songsOutcome returns the outcome of a job that makes songs.
func songsOutcome(clips []clip) (out *mediagate.Outcome, whole bool) {
	out, whole = &mediagate.Outcome{Made: &mediagate.Made{}}, true
	for i, c := range clips {
		seconds := c.Duration.Seconds()
		out.Made.Clips = append(out.Made.Clips, mediagate.Clip{
			ID: c.ID.ID(), Title: c.Title.Prose(), Lyrics: c.Lyric.Prose(), LyricsID: c.LyricsID.ID(), Timing: c.Timing,
			Tags: c.Style.Prose(), CreatedAt: c.CreatedAt.Prose(), Seconds: seconds, State: c.State.Prose(),
		})
		if c.hasFailed() {
			continue
		}
		link := c.Audio.Link()
		if c.ID.ID() == "" || link == "" {
			whole = false
		}
		if link == "" {
			continue
		}
		out.Media = append(out.Media, mediagate.Media{URL: link, Index: i, Duration: seconds})
		for _, extraFile := range []mediagate.Media{
			{URL: c.Image.Link(), Role: mediagate.RoleCover, Index: i},
			{URL: c.WAV.Link(), Role: mediagate.RoleWAV, Index: i, MimeType: "audio/wav"},
			{URL: c.Video.Link(), Role: mediagate.RoleFilm, Index: i, MimeType: "video/mp4"},
		} {
			if extraFile.URL != "" {
				out.Media = append(out.Media, extraFile)
			}
		}
	}
	return out, whole
}

// tracksOutcome returns the outcome of a separation: one file a track, or an archive of all tracks.
func tracksOutcome(ref mediagate.JobRef, clips []clip) (out *mediagate.Outcome, whole bool) {
	out, whole = &mediagate.Outcome{}, true
	if ref.State != "" {
		out.Made = &mediagate.Made{Clips: []mediagate.Clip{{ID: ref.State}}}
	}
	taken := map[string]bool{}
	for i, c := range clips {
		if link := c.Stems.Link(); link != "" {
			out.Media = []mediagate.Media{{URL: link, MimeType: "application/zip"}}
			return out, true
		}
		if c.hasFailed() {
			continue
		}
		link := c.Audio.Link()
		if link == "" {
			whole = false
			continue
		}
		name := trackName(string(c.Title))
		if name == "" || taken[name] {
			name = strings.TrimPrefix(fmt.Sprintf("%s-%d", name, i+1), "-")
		}
		taken[name] = true
		out.Media = append(out.Media, mediagate.Media{
			URL: link, Role: mediagate.RoleStem, Index: i, Name: name, Duration: c.Duration.Seconds(),
		})
	}
	return out, whole
}

// labels matches the end of a track's title that says what the track holds. The vendor writes
// "Title (Vocals)" and "Title - Vocals".
var (
	labels    = regexp.MustCompile(`(?:\(([^()]+)\)|\s-\s+([^-]+))\s*$`)
	separator = regexp.MustCompile(`[^a-z0-9]+`)
)

// trackName returns what the track holds, as part of a file name: "Title (Backing Vocals)" gives
// "backing-vocals".
func trackName(title string) string {
	m := labels.FindStringSubmatch(title)
	if m == nil {
		return ""
	}
	return strings.Trim(separator.ReplaceAllString(strings.ToLower(m[1]+m[2]), "-"), "-")
}
