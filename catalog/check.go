package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"github.com/mediagate/mediagate"
)

// check judges parameters that the schema has let through, with their
// defaults in place.
type check func(params map[string]any) *mediagate.Error

// makeCheck builds the check that a file names, from its arguments. The
// schema's shape lets it refuse fields that do not exist.
type makeCheck func(args []byte, s *shape) (check, error)

// namedChecks are what files may name under checks and requires.
func namedChecks() map[string]makeCheck {
	return map[string]makeCheck{
		"shots":      shotsCheck,
		"together":   togetherCheck,
		"references": referencesCheck,
		"needs":      needsCheck,
		"given":      givenCheck,
		"without":    withoutCheck,
		"distinct":   distinctCheck,
	}
}

// compileChecks builds a list of checks from the registry.
func compileChecks(files []namedFile, known map[string]makeCheck, s *shape) ([]check, []string) {
	var (
		checks   []check
		problems []string
	)
	for _, f := range files {
		build, ok := known[f.name]
		if !ok {
			problems = append(problems, fmt.Sprintf("no check is named %q; there are %s", f.name, list(slices.Sorted(maps.Keys(known)), "and")))
			continue
		}
		c, err := build(f.args, s)
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", f.name, err))
			continue
		}
		checks = append(checks, c)
	}
	return checks, problems
}

// decodeArgs reads a check's arguments strictly, and demands that the fields
// among them exist.
func decodeArgs(b []byte, into any, s *shape, fields func() []string) error {
	if err := yaml.UnmarshalWithOptions(b, into, yaml.Strict()); err != nil {
		return fmt.Errorf("%s", strings.TrimSpace(yaml.FormatError(err, false, false)))
	}
	for _, name := range fields() {
		if s.properties[name] == nil {
			return fmt.Errorf("%q is no field of the schema", name)
		}
	}
	return nil
}

// shotsCheck is for a film in shots: their indexes are 1 to n, once each, in
// any order, and their durations add up to the whole.
func shotsCheck(b []byte, s *shape) (check, error) {
	var args struct {
		List  string `yaml:"list"`
		Total string `yaml:"total"`
	}
	if err := decodeArgs(b, &args, s, func() []string { return []string{args.List, args.Total} }); err != nil {
		return nil, err
	}
	return func(params map[string]any) *mediagate.Error {
		shots, ok := params[args.List].([]any)
		if !ok {
			return nil
		}
		total, _ := int64Of(params[args.Total])
		seen := make([]bool, len(shots)+1)
		var sum int64
		for i, item := range shots {
			shot, _ := item.(map[string]any)
			index, _ := int64Of(shot["index"])
			if index < 1 || index > int64(len(shots)) || seen[index] {
				return problem{path: []any{args.List, i, "index"}, text: fmt.Sprintf("must number the shots from 1 to %d, each number once", len(shots))}.err()
			}
			seen[index] = true
			duration, _ := int64Of(shot["duration"])
			if duration < 1 || duration > total {
				return problem{path: []any{args.List, i, "duration"}, text: fmt.Sprintf("must be between 1 and the total %s of %d", args.Total, total)}.err()
			}
			sum += duration
		}
		if sum != total {
			return problem{path: []any{args.List}, text: fmt.Sprintf("must have durations that add up to the %s of %d, they add up to %d", args.Total, total, sum)}.err()
		}
		return nil
	}, nil
}

// togetherCheck bounds the items of several lists taken together, more
// tightly when a certain field is there.
func togetherCheck(b []byte, s *shape) (check, error) {
	var args struct {
		Lists   []string `yaml:"lists"`
		Max     int      `yaml:"max"`
		With    string   `yaml:"with"`
		MaxWith int      `yaml:"max_with"`
	}
	fields := func() []string {
		if args.With == "" {
			return args.Lists
		}
		return append(slices.Clone(args.Lists), args.With)
	}
	if err := decodeArgs(b, &args, s, fields); err != nil {
		return nil, err
	}
	return func(params map[string]any) *mediagate.Error {
		count, last := 0, ""
		for _, name := range args.Lists {
			if items, ok := params[name].([]any); ok && len(items) > 0 {
				count, last = count+len(items), name
			}
		}
		_, with := params[args.With]
		switch {
		case with && count > args.MaxWith:
			return mediagate.Invalid(last, "%s may hold at most %d items together when %s is given", list(args.Lists, "and"), args.MaxWith, args.With)
		case count > args.Max:
			return mediagate.Invalid(last, "%s may hold at most %d items together", list(args.Lists, "and"), args.Max)
		}
		return nil
	}, nil
}

// referencesArgs are shared by the check of references and the rewrite that
// adds one. A reference reads <<<WORD_N>>>, N from 1.
type referencesArgs struct {
	Text string `yaml:"text"`
	List string `yaml:"list"`
	Word string `yaml:"word"`
}

func (a *referencesArgs) fields() []string { return []string{a.Text, a.List} }

func (a *referencesArgs) pattern() (*regexp.Regexp, error) {
	return regexp.Compile(`<<<` + regexp.QuoteMeta(a.Word) + `_([0-9]+)>>>`)
}

func (a *referencesArgs) refused(items int) *mediagate.Error {
	if items == 0 {
		return mediagate.Invalid(a.Text, "%s may refer to no <<<%s_N>>>, since %s is empty", a.Text, a.Word, a.List)
	}
	return mediagate.Invalid(a.Text, "%s may refer to <<<%s_N>>> with N from 1 to %d, the number of %s",
		a.Text, a.Word, items, a.List)
}

// referencesCheck demands that each reference in a text leads to an item of
// a list.
func referencesCheck(b []byte, s *shape) (check, error) {
	var args referencesArgs
	if err := decodeArgs(b, &args, s, args.fields); err != nil {
		return nil, err
	}
	pattern, err := args.pattern()
	if err != nil {
		return nil, err
	}
	return func(params map[string]any) *mediagate.Error {
		text, _ := params[args.Text].(string)
		items, _ := params[args.List].([]any)
		for _, match := range pattern.FindAllStringSubmatch(text, -1) {
			n, err := strconv.Atoi(match[1])
			if err != nil || n < 1 || n > len(items) || match[1][0] == '0' {
				return args.refused(len(items))
			}
		}
		return nil
	}, nil
}

// needsCheck makes one field depend on another.
func needsCheck(b []byte, s *shape) (check, error) {
	var args struct {
		Field string `yaml:"field"`
		With  string `yaml:"with"`
	}
	if err := decodeArgs(b, &args, s, func() []string { return []string{args.Field, args.With} }); err != nil {
		return nil, err
	}
	return func(params map[string]any) *mediagate.Error {
		if _, ok := params[args.Field]; !ok {
			return nil
		}
		if _, ok := params[args.With]; !ok {
			return mediagate.Invalid(args.Field, "%s is only possible together with %s", args.Field, args.With)
		}
		return nil
	}, nil
}

// givenCheck demands a field, or one of some item of a list. It is for routes
// that exist for the sake of it.
func givenCheck(b []byte, s *shape) (check, error) {
	var args struct {
		Field string `yaml:"field"`
		Item  string `yaml:"item"`
	}
	if err := decodeArgs(b, &args, s, func() []string { return []string{args.Field} }); err != nil {
		return nil, err
	}
	if args.Item != "" && s.at([]any{args.Field, 0, args.Item}) == nil {
		return nil, fmt.Errorf("%q is no field of the items of %s", args.Item, args.Field)
	}
	return func(params map[string]any) *mediagate.Error {
		value, ok := params[args.Field]
		switch {
		case !ok:
			return problem{path: []any{args.Field}, text: "is required"}.err()
		case args.Item != "" && itemWith(value, args.Item) < 0:
			return problem{path: []any{args.Field}, text: fmt.Sprintf("must have an item with %s", args.Item)}.err()
		}
		return nil
	}, nil
}

// itemWith is the index of the first item that has the field, -1 for none.
func itemWith(list any, field string) int {
	items, _ := list.([]any)
	return slices.IndexFunc(items, func(item any) bool {
		fields, _ := item.(map[string]any)
		_, ok := fields[field]
		return ok
	})
}

// distinctCheck demands that no two items of a list have the same text in a
// field. Blanks around it do not tell texts apart.
func distinctCheck(b []byte, s *shape) (check, error) {
	var args struct {
		List string `yaml:"list"`
		Item string `yaml:"item"`
	}
	if err := decodeArgs(b, &args, s, func() []string { return []string{args.List} }); err != nil {
		return nil, err
	}
	if s.at([]any{args.List, 0, args.Item}) == nil {
		return nil, fmt.Errorf("%q is no field of the items of %s", args.Item, args.List)
	}
	return func(params map[string]any) *mediagate.Error {
		items, _ := params[args.List].([]any)
		seen := map[string]int{}
		for i, item := range items {
			fields, _ := item.(map[string]any)
			text, ok := fields[args.Item].(string)
			if !ok {
				continue
			}
			text = strings.TrimSpace(text)
			if first, twice := seen[text]; twice {
				return problem{path: []any{args.List, i, args.Item}, text: "must differ from " + paramName([]any{args.List, first, args.Item})}.err()
			}
			seen[text] = i
		}
		return nil
	}, nil
}

// withoutCheck refuses a field, a field of a list's items, or one value of a
// field. An empty text counts as absent: there is nothing that a vendor could
// leave undone.
func withoutCheck(b []byte, s *shape) (check, error) {
	var args struct {
		Field string `yaml:"field"`
		Item  string `yaml:"item"`
		Value any    `yaml:"value"`
		Rule  string `yaml:"rule"` // why, in words that follow the field's name
	}
	if err := decodeArgs(b, &args, s, func() []string { return []string{args.Field} }); err != nil {
		return nil, err
	}
	if args.Item != "" && s.at([]any{args.Field, 0, args.Item}) == nil {
		return nil, fmt.Errorf("%q is no field of the items of %s", args.Item, args.Field)
	}
	if args.Rule == "" {
		return nil, fmt.Errorf("rule is missing: clients must be told")
	}
	wanted := jsonValue(args.Value)
	switch wanted.(type) {
	case nil, string, bool, json.Number:
	default: // not comparable
		return nil, fmt.Errorf("value must be a text, a number or a boolean")
	}
	return func(params map[string]any) *mediagate.Error {
		value, ok := params[args.Field]
		switch {
		case !ok || value == "" || (wanted != nil && value != wanted):
			return nil
		case args.Item == "":
			return problem{path: []any{args.Field}, text: args.Rule}.err()
		}
		if i := itemWith(value, args.Item); i >= 0 {
			return problem{path: []any{args.Field, i, args.Item}, text: args.Rule}.err()
		}
		return nil
	}, nil
}

// namedRewrites are what files may name under rewrites: they change the
// parameters, after all checks have passed. They set fields, and leave the
// values alone that lists and objects hold: other routes share them.
func namedRewrites() map[string]makeCheck {
	return map[string]makeCheck{
		"refer_to_first": referToFirst,
		"show_subjects":  showSubjects,
		"avoid":          avoid,
	}
}

// referToFirst puts a reference to the first item of a list in front of a
// text that refers to none. The text must still fit the schema.
func referToFirst(b []byte, s *shape) (check, error) {
	var args referencesArgs
	if err := decodeArgs(b, &args, s, args.fields); err != nil {
		return nil, err
	}
	pattern, err := args.pattern()
	if err != nil {
		return nil, err
	}
	bound := s.properties[args.Text].maxLength
	return func(params map[string]any) *mediagate.Error {
		text, _ := params[args.Text].(string)
		items, _ := params[args.List].([]any)
		if len(items) == 0 || pattern.MatchString(text) {
			return nil
		}
		first := fmt.Sprintf("<<<%s_1>>>", args.Word)
		text = first + text
		if bound > 0 && int64(utf8.RuneCountInString(text)) > bound {
			return mediagate.Invalid(args.Text, "%s must be a string of at most %d characters, with the %s that is put in front when it refers to no item of %s",
				args.Text, bound, first, args.List)
		}
		params[args.Text] = text
		return nil
	}, nil
}
