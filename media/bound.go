package media

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/media/mediainfo"
)

// leastSide is the minimum side of an image, for all models: no model can use a smaller one.
// imagefile limits the largest side.
const leastSide = 8

// flawOf checks a file for one input of a model, and returns the first flaw, or nil.
func flawOf(in mediagate.Input, f mediainfo.Facts) *flaw {
	if found := generalFlaw(in.Kind, f); found != nil {
		return found
	}
	return boundsFlaw(in, f)
}

// generalFlaw checks what every model needs: the kind of the file and a minimum size. An empty kind
// allows every kind.
func generalFlaw(kind string, f mediainfo.Facts) *flaw {
	bad := func(format string, args ...any) *flaw {
		return &flaw{unusable: true, words: fmt.Sprintf(format, args...)}
	}
	known := f.Width > 0 && f.Height > 0
	switch {
	case kind != "" && string(f.Format.Class) != kind:
		return bad("is %s, not %s", aKind(string(f.Format.Class)), aKind(kind))
	case known && min(f.Width, f.Height) < leastSide:
		return bad("is %d × %d pixels, too small to be used", f.Width, f.Height)
	}
	return nil
}

// boundsFlaw checks the bounds of the model's contract and returns the first that the file breaks.
// A file that does not state a value, such as its length, breaks the bounds on that value.
func boundsFlaw(in mediagate.Input, f mediainfo.Facts) *flaw {
	b := in.MediaBounds
	broken := func(format string, args ...any) *flaw { return &flaw{words: fmt.Sprintf(format, args...)} }
	if len(b.Formats) > 0 && !slices.Contains(b.Formats, f.Format.Word()) {
		return broken("is a %s file, %s is required", formatName(f.Format.Word()), anyFormat(b.Formats))
	}
	sides := b.MinSide > 0 || b.MaxSide > 0 || b.MinRatio != (mediagate.Ratio{}) || b.MaxRatio != (mediagate.Ratio{})
	length := b.MinSeconds > 0 || b.MaxSeconds > 0 || in.Covers != nil
	ratio := mediagate.Ratio{Width: int64(f.Width), Height: int64(f.Height)}
	size := fmt.Sprintf("is %d × %d pixels", f.Width, f.Height)
	seconds := math.Round(f.Duration*10) / 10
	switch {
	case sides && f.Width == 0:
		return &flaw{unusable: true, words: "does not tell its width and height"}
	case length && f.Duration == 0:
		return &flaw{unusable: true, words: "does not tell its length"}
	case b.MinSide > 0 && min(f.Width, f.Height) < b.MinSide:
		return broken("%s, at least %d × %d are required", size, b.MinSide, b.MinSide)
	case b.MaxSide > 0 && max(f.Width, f.Height) > b.MaxSide:
		return broken("%s, at most %d × %d are allowed", size, b.MaxSide, b.MaxSide)
	case b.MinRatio != (mediagate.Ratio{}) && ratio.Less(b.MinRatio),
		b.MaxRatio != (mediagate.Ratio{}) && b.MaxRatio.Less(ratio):
		return broken("%s, a ratio of width to height %s is required", size, ratios(b))
	case b.MinSeconds > 0 && seconds < b.MinSeconds:
		return broken("is %g seconds long, at least %g are required", seconds, b.MinSeconds)
	case b.MaxSeconds > 0 && seconds > b.MaxSeconds:
		return broken("is %g seconds long, at most %g are allowed", seconds, b.MaxSeconds)
	case in.Covers != nil && seconds < in.Covers.Seconds:
		return broken("is %g seconds long, %s asks for %g", seconds, in.Covers.Field, in.Covers.Seconds)
	}
	return nil
}

func ratios(b mediagate.MediaBounds) string {
	switch {
	case b.MaxRatio == (mediagate.Ratio{}):
		return "of at least " + b.MinRatio.String()
	case b.MinRatio == (mediagate.Ratio{}):
		return "of at most " + b.MaxRatio.String()
	default:
		return fmt.Sprintf("between %s and %s", b.MinRatio, b.MaxRatio)
	}
}

func aKind(kind string) string {
	switch kind {
	case string(mediainfo.ClassImage):
		return "an image"
	case string(mediainfo.ClassAudio):
		return "a sound"
	default:
		return "a video"
	}
}

// formatName is how a format is written in a sentence.
func formatName(word string) string {
	if word == "webp" {
		return "WebP"
	}
	return strings.ToUpper(word)
}

func anyFormat(formats []string) string {
	names := make([]string, len(formats))
	for i, word := range formats {
		names[i] = formatName(word)
	}
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
