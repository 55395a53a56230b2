package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/media/mediainfo"
)

// mediaRule holds the bounds in a field's x-media.
type mediaRule struct {
	bounds mediagate.MediaBounds
	first  int    // how many items of a list are checked; 0 for all
	covers string // the field that says how many seconds of the file are asked for
}

// mediaFile is x-media as a file writes it.
type mediaFile struct {
	Kind       string   `yaml:"kind"`
	Formats    []string `yaml:"formats"`
	MinSide    *int     `yaml:"min_side"`
	MaxSide    *int     `yaml:"max_side"`
	MinRatio   *string  `yaml:"min_ratio"`
	MaxRatio   *string  `yaml:"max_ratio"`
	MinSeconds *float64 `yaml:"min_seconds"`
	MaxSeconds *float64 `yaml:"max_seconds"`
	MaxBytes   byteSize `yaml:"max_bytes"`
	First      *int     `yaml:"first"`
	Covers     string   `yaml:"covers"`
}

var mediaKinds = []string{string(mediainfo.ClassImage), string(mediainfo.ClassVideo), string(mediainfo.ClassAudio)}

// readMedia compiles x-media and lists its problems.
func readMedia(value any) (*mediaRule, []string) {
	text, err := yaml.Marshal(value)
	if err != nil {
		return nil, []string{fmt.Sprintf("x-media: %v", err)}
	}
	var f mediaFile
	if err := yaml.UnmarshalWithOptions(text, &f, yaml.Strict()); err != nil {
		return nil, []string{"x-media: " + strings.TrimSpace(yaml.FormatError(err, false, false))}
	}
	r := &mediaRule{
		bounds: mediagate.MediaBounds{Kind: f.Kind, Formats: f.Formats, MaxBytes: int64(f.MaxBytes)},
		covers: f.Covers,
	}
	if !slices.Contains(mediaKinds, f.Kind) {
		return r, []string{"x-media.kind must be " + list(mediaKinds, "or")}
	}
	var problems []string
	demand := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, "x-media."+fmt.Sprintf(format, args...))
		}
	}
	if words := mediainfo.Words(mediainfo.Class(f.Kind)); len(f.Formats) > 0 {
		for _, word := range f.Formats {
			demand(slices.Contains(words, word), "formats: %q is none of %s", word, list(words, "and"))
		}
	}
	sides := f.MinSide != nil || f.MaxSide != nil || f.MinRatio != nil || f.MaxRatio != nil
	demand(!sides || f.Kind != string(mediainfo.ClassAudio), "kind: a sound has no sides")
	length := f.MinSeconds != nil || f.MaxSeconds != nil || f.Covers != ""
	demand(!length || f.Kind != string(mediainfo.ClassImage), "kind: an image has no length")

	r.bounds.MinSide, r.bounds.MaxSide = above(f.MinSide, "min_side", demand), above(f.MaxSide, "max_side", demand)
	r.bounds.MinSeconds = above(f.MinSeconds, "min_seconds", demand)
	r.bounds.MaxSeconds = above(f.MaxSeconds, "max_seconds", demand)
	r.first = above(f.First, "first", demand)
	r.bounds.MinRatio, r.bounds.MaxRatio = ratio(f.MinRatio, "min_ratio", demand), ratio(f.MaxRatio, "max_ratio", demand)
	b := r.bounds
	demand(b.MinSide == 0 || b.MaxSide == 0 || b.MinSide <= b.MaxSide, "min_side is above max_side")
	demand(b.MinSeconds == 0 || b.MaxSeconds == 0 || b.MinSeconds <= b.MaxSeconds, "min_seconds is above max_seconds")
	none := mediagate.Ratio{}
	demand(b.MinRatio == none || b.MaxRatio == none || !b.MaxRatio.Less(b.MinRatio), "min_ratio is above max_ratio")
	return r, problems
}

type demandFunc func(ok bool, format string, args ...any)

// above returns the value, which must be above 0 if it is given.
func above[T int | float64](v *T, key string, demand demandFunc) T {
	if v == nil {
		return 0
	}
	demand(*v > 0, "%s must be above 0", key)
	return max(*v, 0)
}

func ratio(text *string, key string, demand demandFunc) mediagate.Ratio {
	if text == nil {
		return mediagate.Ratio{}
	}
	r, err := mediagate.ParseRatio(*text)
	demand(err == nil, "%s: %v", key, err)
	return r
}

// misplacements lists the parts of the rule that do not fit its field. root is the shape of the
// whole request.
func (r *mediaRule) misplacements(field, root *shape) []string {
	var problems []string
	if !field.takesMedia() && !field.takesItems() {
		problems = append(problems, "x-media: the field takes no media")
	}
	if r.first > 0 && !field.is("array") {
		problems = append(problems, "x-media.first is for lists")
	}
	if r.covers != "" {
		if f := root.properties[r.covers]; f == nil || !f.is("integer") {
			problems = append(problems, fmt.Sprintf("x-media.covers: %q is no integer field of the request", r.covers))
		}
	}
	return problems
}

// takesItems reports whether the field is a list of objects that have files among their fields.
func (s *shape) takesItems() bool {
	return s.items != nil && slices.ContainsFunc(
		s.items.names, func(name string) bool { return s.items.properties[name].media },
	)
}

// media lists the files of a request in the order of the schema, including files in the request
// itself.
func (o *Operation) media(params map[string]any) []mediagate.Input {
	var found []mediagate.Input
	o.schema.shape.visitMedia(params, nil, func(r *mediaRule, path []any) {
		in := mediagate.Input{Field: paramName(path), MediaBounds: r.bounds}
		if seconds, ok := int64Of(params[r.covers]); ok && seconds > 0 {
			in.Covers = &mediagate.Covers{Field: r.covers, Seconds: float64(seconds)}
		}
		found = append(found, in)
	})
	return found
}

// withBounds returns the files that have bounds beyond their kind.
func withBounds(files []mediagate.Input) []mediagate.Input {
	var found []mediagate.Input
	for _, in := range files {
		if in.Bound() || in.Covers != nil {
			found = append(found, in)
		}
	}
	return found
}

func (s *shape) visitMedia(v any, path []any, found func(r *mediaRule, path []any)) {
	if r := s.notes.media; r != nil {
		files := s.files(v, path)
		if r.first > 0 && len(files) > r.first {
			files = files[:r.first]
		}
		for _, file := range files {
			found(r, file)
		}
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range s.names {
			if value, ok := v[name]; ok {
				s.properties[name].visitMedia(value, append(slices.Clone(path), name), found)
			}
		}
	case []any:
		for i, item := range v {
			if s.items != nil {
				s.items.visitMedia(item, append(slices.Clone(path), i), found)
			}
		}
	}
}

// files returns the paths of the files within a value: the value itself, its items, or fields of
// its items.
func (s *shape) files(v any, path []any) [][]any {
	var places [][]any
	switch v := v.(type) {
	case string:
		places = append(places, path)
	case []any:
		for i, item := range v {
			if s.items != nil {
				places = append(places, s.items.files(item, append(slices.Clone(path), i))...)
			}
		}
	case map[string]any:
		for _, name := range s.names {
			if value, ok := v[name].(string); ok && s.properties[name].media {
				places = append(places, s.properties[name].files(value, append(slices.Clone(path), name))...)
			}
		}
	}
	return places
}
