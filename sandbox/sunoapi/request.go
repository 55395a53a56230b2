package sunoapi

import (
	"cmp"
	"strings"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// The bounds of a section that can be replaced, in seconds and as a part of the song.
const (
	spanMin  = 6.0
	spanMax  = 60.0
	spanPart = 0.5
	// slack allows for rounding errors.
	slack = 0.001
)

// songSeconds is how long the first song of a request plays. The second plays a second longer.
const songSeconds = 16

// job returns the job of an operation. find returns the song that the operation works on.
func job(operation string, b kernel.Body, find func(task, id string) (*kernel.Job, int)) (*kernel.Job, error) {
	prompt, title, tags := b.Text("prompt"), b.Text("title"), cmp.Or(b.Text("style"), b.Text("tags"))
	j := &kernel.Job{
		ID: strings.ReplaceAll(kernel.UUID(), "-", ""), CallbackURL: b.Text("callBackUrl"), Model: b.Text("model"),
		Prompt: kernel.DirectiveText(prompt, tags, title),
		Media:  kernel.Media{Kind: "audio", Seconds: songSeconds, Songs: 2, SecondLonger: true},
		Detail: map[string]string{"lyrics": prompt, "title": title, "tags": tags},
	}
	if operation == opGenerate {
		if !b.Flag("customMode", false) {
			j.Detail = map[string]string{"lyrics": "[Verse]\n" + prompt, "title": "Untitled"}
		}
		return j, nil
	}
	source, song := find(b.Text("taskId"), b.Text("audioId"))
	if source == nil {
		return nil, kernel.NewViolation("audioId", "there is no such song of that task")
	}
	j.Model = source.Model
	seconds := source.Media.Length(song)
	j.Media = kernel.Media{Kind: "audio", Seconds: int(seconds), Songs: 1}
	if operation == opSeparate {
		j.Media.Songs = len(parts)
		j.Detail = map[string]string{"source": b.Text("audioId")}
		return j, nil
	}
	j.Detail["lyrics"] = cmp.Or(b.Text("fullLyrics"), source.Detail["lyrics"])
	end := b.Number("infillEndS")
	switch span := end - b.Number("infillStartS"); {
	case span <= 0 || end > seconds:
		return nil, kernel.NewViolation("infillEndS", "must be after the start, within the song")
	case span < spanMin-slack || span > spanMax+slack:
		return nil, kernel.NewViolation("infillEndS", "must be %g to %g seconds after the start", spanMin, spanMax)
	case span > spanPart*seconds+slack:
		return nil, kernel.NewViolation("infillEndS", "the section must be half of the song at most")
	}
	return j, nil
}
