package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"github.com/mediagate/mediagate"
)

// check validates parameters that have passed the schema and have their defaults.
type check func(params map[string]any) *mediagate.Error

// namedCheck is a check as a file names it.
type namedCheck struct {
	name string
	args []byte
	run  check
}

// makeCheck builds a check from the arguments in the file. It uses the schema's shape to refuse
// fields that do not exist. A check that narrows the values of a field records that in the shape,
// since prices depend on the possible values.
type makeCheck func(args []byte, s *shape) (check, error)

// namedChecks returns the checks that files may name. media checks URLs.
func namedChecks(media MediaURLCheck) map[string]makeCheck {
	return map[string]makeCheck{
		"shots":      shotsCheck,
		"together":   togetherCheck,
		"references": referencesCheck,
		"needs":      needsCheck,
		"excludes":   excludesCheck,
		"distinct":   distinctCheck,
		"between":    betweenCheck,
		"among":      amongCheck,
		"ascending":  ascendingCheck,
		"plain":      plainCheck,
		"addresses":  func(args []byte, s *shape) (check, error) { return addressesCheck(args, s, media) },
	}
}

// compileChecks builds the checks of a file.
func compileChecks(files []checkFile, s *shape, media MediaURLCheck) ([]namedCheck, []string) {
	var (
		checks   []namedCheck
		problems []string
	)
	known := namedChecks(media)
	for _, f := range files {
		build, ok := known[f.name]
		if !ok {
			problems = append(
				problems, fmt.Sprintf("no check is named %q; there are %s", f.name, list(slices.Sorted(maps.Keys(known)), "and")),
			)
			continue
		}
		c, err := build(f.args, s)
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", f.name, err))
			continue
		}
		checks = append(checks, namedCheck{name: f.name, args: f.args, run: c})
	}
	return checks, problems
}

// decodeArgs decodes a check's arguments strictly, and requires the fields among them to exist.
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

// shotsCheck validates a film in shots: their indexes are 1 to n in any order, and their durations
// add up to the total.
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
				return problem{
					path: []any{args.List, i, "index"},
					text: fmt.Sprintf("must number the shots from 1 to %d, each number once", len(shots)),
				}.err()
			}
			seen[index] = true
			duration, _ := int64Of(shot["duration"])
			if duration < 1 || duration > total {
				return problem{
					path: []any{args.List, i, "duration"},
					text: fmt.Sprintf("must be between 1 and the total %s of %d", args.Total, total),
				}.err()
			}
			sum += duration
		}
		if sum != total {
			return problem{
				path: []any{args.List},
				text: fmt.Sprintf("must have durations that add up to the %s of %d, they add up to %d", args.Total, total, sum),
			}.err()
		}
		return nil
	}, nil
}

// togetherCheck bounds the number of items in several lists together, more tightly if a certain
// field is present.
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
			return mediagate.Invalid(
				last, "%s may hold at most %d items together when %s is given", list(args.Lists, "and"), args.MaxWith, args.With,
			)
		case count > args.Max:
			return mediagate.Invalid(last, "%s may hold at most %d items together", list(args.Lists, "and"), args.Max)
		}
		return nil
	}, nil
}

// referencesCheck requires that each reference in a text, <<<WORD_N>>> with N from 1, leads to an
// item of a list.
func referencesCheck(b []byte, s *shape) (check, error) {
	var args struct {
		Text string `yaml:"text"`
		List string `yaml:"list"`
		Word string `yaml:"word"`
	}
	if err := decodeArgs(b, &args, s, func() []string { return []string{args.Text, args.List} }); err != nil {
		return nil, err
	}
	pattern, err := regexp.Compile(`<<<` + regexp.QuoteMeta(args.Word) + `_([0-9]+)>>>`)
	if err != nil {
		return nil, err
	}
	return func(params map[string]any) *mediagate.Error {
		text, _ := params[args.Text].(string)
		items, _ := params[args.List].([]any)
		for _, match := range pattern.FindAllStringSubmatch(text, -1) {
			n, err := strconv.Atoi(match[1])
			switch {
			case err == nil && n >= 1 && n <= len(items) && match[1][0] != '0':
			case len(items) == 0:
				return mediagate.Invalid(
					args.Text, "%s may refer to no <<<%s_N>>>, since %s is empty", args.Text, args.Word, args.List,
				)
			default:
				return mediagate.Invalid(args.Text, "%s may refer to <<<%s_N>>> with N from 1 to %d, the number of %s",
					args.Text, args.Word, len(items), args.List)
			}
		}
		return nil
	}, nil
}

// names are fields that a file names, one or a list of them.
type names []string

// UnmarshalYAML reads `field` or `[field, field]`.
func (n *names) UnmarshalYAML(b []byte) error {
	var many []string
	if yaml.Unmarshal(b, &many) == nil {
		*n = many
		return nil
	}
	var one string
	if err := yaml.Unmarshal(b, &one); err != nil {
		return err
	}
	*n = names{one}
	return nil
}

// firstIn returns the first of the fields that is present.
func (n names) firstIn(params map[string]any) (string, bool) {
	for _, name := range n {
		if _, ok := params[name]; ok {
			return name, true
		}
	}
	return "", false
}

// needsCheck requires that a field comes together with another one, or with one of several.
func needsCheck(b []byte, s *shape) (check, error) {
	var args struct {
		Field string `yaml:"field"`
		With  names  `yaml:"with"`
	}
	if err := decodeArgs(b, &args, s, func() []string { return append(slices.Clone(args.With), args.Field) }); err != nil {
		return nil, err
	}
	if len(args.With) == 0 {
		return nil, fmt.Errorf("with is missing")
	}
	return func(params map[string]any) *mediagate.Error {
		if _, ok := params[args.Field]; !ok {
			return nil
		}
		if _, ok := args.With.firstIn(params); !ok {
			return mediagate.Invalid(args.Field, "%s is only possible together with %s", args.Field, list(args.With, "or"))
		}
		return nil
	}, nil
}

// excludesCheck refuses a request that has one of some fields together with one of some others.
func excludesCheck(b []byte, s *shape) (check, error) {
	var args struct {
		Fields names `yaml:"fields"`
		With   names `yaml:"with"`
	}
	if err := decodeArgs(b, &args, s, func() []string { return slices.Concat(args.Fields, args.With) }); err != nil {
		return nil, err
	}
	if len(args.Fields) == 0 || len(args.With) == 0 {
		return nil, fmt.Errorf("fields and with are needed")
	}
	return func(params map[string]any) *mediagate.Error {
		field, one := args.Fields.firstIn(params)
		present, other := args.With.firstIn(params)
		if one && other {
			return mediagate.Invalid(field, "%s is not possible together with %s", field, present)
		}
		return nil
	}, nil
}

// distinctCheck requires that a text differs between all items of a list. Blanks around it do not
// count.
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
				return problem{
					path: []any{args.List, i, args.Item}, text: "must differ from " + paramName([]any{args.List, first, args.Item}),
				}.err()
			}
			seen[text] = i
		}
		return nil
	}, nil
}

// betweenCheck bounds a number that the schema leaves open.
func betweenCheck(b []byte, s *shape) (check, error) {
	var args struct {
		Field string `yaml:"field"`
		Min   int64  `yaml:"min"`
		Max   int64  `yaml:"max"`
	}
	if err := decodeArgs(b, &args, s, func() []string { return []string{args.Field} }); err != nil {
		return nil, err
	}
	field := s.properties[args.Field]
	if !field.is("integer") || args.Min > args.Max {
		return nil, fmt.Errorf("%q must be an integer, and min not above max", args.Field)
	}
	field.minimum, field.maximum = numberOf(args.Min), numberOf(args.Max)
	words := rule{types: []string{"integer"}, minimum: field.minimum, maximum: field.maximum}.text()
	return func(params map[string]any) *mediagate.Error {
		v, given := params[args.Field]
		if n, ok := int64Of(v); given && (!ok || n < args.Min || n > args.Max) {
			return mediagate.Invalid(args.Field, "%s %s", args.Field, words)
		}
		return nil
	}, nil
}

// amongCheck lists the values of a text that the schema leaves open.
func amongCheck(b []byte, s *shape) (check, error) {
	var args struct {
		Field  string   `yaml:"field"`
		Values []string `yaml:"values"`
	}
	if err := decodeArgs(b, &args, s, func() []string { return []string{args.Field} }); err != nil {
		return nil, err
	}
	field := s.properties[args.Field]
	if !field.is("string") || len(args.Values) == 0 {
		return nil, fmt.Errorf("%q must be a text, and values not empty", args.Field)
	}
	for _, value := range args.Values {
		field.enum = append(field.enum, value)
	}
	words := rule{enum: field.enum}.text()
	return func(params map[string]any) *mediagate.Error {
		text, ok := params[args.Field].(string)
		if ok && !slices.Contains(args.Values, text) {
			return mediagate.Invalid(args.Field, "%s %s", args.Field, words)
		}
		return nil
	}, nil
}

// notPlain is what a plain text must not contain. Vendors that read parameters from a text take two
// hyphens for the beginning of a parameter, and an em dash for two hyphens, even with invisible
// characters between them. They also take other blanks for a space, and turn each of the words in
// curly braces into a job of its own.
var notPlain = []struct {
	pattern *regexp.Regexp
	words   string
}{
	{regexp.MustCompile(`(?:-` + hidden + `*-|—)(?:[-—]|` + hidden + `)*[\p{L}\p{N}_]`), "must not hold -- or an em dash directly before a word: parameters have fields of their own"},
	{regexp.MustCompile(`[{}]`), "must not hold a curly brace"},
	{regexp.MustCompile(`[\t\v\f\r\x{1c}-\x{1f}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]` + hidden + `*\p{Pd}`), "must not hold whitespace other than space and newline before a dash"},
}

// hidden matches characters that may be invisible: control characters that are no whitespace,
// format characters, marks, and fillers of Hangul and Unicode.
const hidden = `[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\p{Cf}\p{M}\x{115f}\x{1160}\x{2065}\x{3164}\x{ffa0}\x{fff0}-\x{fff8}\x{e0000}-\x{e0fff}]`

// plainCheck refuses texts that a vendor would read as more than words.
func plainCheck(b []byte, s *shape) (check, error) {
	return textsCheck(b, s, func(text string) string {
		for _, no := range notPlain {
			if no.pattern.MatchString(text) {
				return no.words
			}
		}
		return ""
	})
}

// address matches the beginning of a URL in a text.
var address = regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://`)

// addressesCheck checks the URLs in some texts like media URLs, since the vendor fetches them. A
// URL ends at the next blank, and another one may begin within it: readers differ in where a URL
// ends.
func addressesCheck(b []byte, s *shape, media MediaURLCheck) (check, error) {
	return textsCheck(b, s, func(text string) string {
		for _, at := range address.FindAllStringIndex(text, -1) {
			url := text[at[0]:]
			if end := strings.IndexFunc(url, unicode.IsSpace); end >= 0 {
				url = url[:end]
			}
			url = strings.TrimRight(url, `.,;:!?"')]>`)
			for _, url := range []string{url, addressAhead(url)} {
				if url == "" {
					continue
				}
				if err := media(url); err != nil {
					return "has the URL " + mediagate.Quote(url) + ", which " + formatWords(formatMediaURL, err)
				}
			}
		}
		return ""
	})
}

// addressAhead returns the URL that an ASCII-only reader sees before the first other character,
// if its host is an IP address, and "" otherwise.
func addressAhead(url string) string {
	end := strings.IndexFunc(url, func(c rune) bool { return c >= utf8.RuneSelf })
	if end < 0 {
		return ""
	}
	_, host, _ := strings.Cut(url[:end], "://")
	if _, err := netip.ParseAddr(host); err != nil {
		return ""
	}
	return url[:end]
}

// textsCheck checks some texts with problem, which returns words that follow the field's name, or
// "" for a valid text.
func textsCheck(b []byte, s *shape, problem func(text string) string) (check, error) {
	var args struct {
		Fields names `yaml:"fields"`
	}
	if err := decodeArgs(b, &args, s, func() []string { return args.Fields }); err != nil {
		return nil, err
	}
	if len(args.Fields) == 0 ||
		slices.ContainsFunc(args.Fields, func(name string) bool { return !s.properties[name].is("string") }) {
		return nil, fmt.Errorf("fields must be texts")
	}
	return func(params map[string]any) *mediagate.Error {
		for _, name := range args.Fields {
			text, _ := params[name].(string)
			if words := problem(text); words != "" {
				return mediagate.Invalid(name, "%s %s", name, words)
			}
		}
		return nil
	}, nil
}

// ascendingCheck requires that each of the given numbers is greater than the one before it.
func ascendingCheck(b []byte, s *shape) (check, error) {
	var args struct {
		Fields []string `yaml:"fields"`
	}
	if err := decodeArgs(b, &args, s, func() []string { return args.Fields }); err != nil {
		return nil, err
	}
	if len(args.Fields) < 2 ||
		slices.ContainsFunc(args.Fields, func(name string) bool { return !s.properties[name].is("number") }) {
		return nil, fmt.Errorf("fields must be two or more numbers")
	}
	return func(params map[string]any) *mediagate.Error {
		before, least := "", 0.0
		for _, name := range args.Fields {
			n, given := params[name].(json.Number)
			if !given {
				continue
			}
			v, _ := n.Float64()
			if before != "" && v <= least {
				return mediagate.Invalid(name, "%s must be greater than %s", name, before)
			}
			before, least = name, v
		}
		return nil
	}, nil
}
