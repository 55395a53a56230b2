package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mediagate/mediagate"
)

// subjectsArgs say where a request holds subjects that are described by name
// and pictures, and how many references the vendor takes.
type subjectsArgs struct {
	List        string `yaml:"list"`        // of subjects; one without a name is known to the vendor
	Name        string `yaml:"name"`        // fields of its items
	Description string `yaml:"description"` //
	Pictures    string `yaml:"pictures"`    //
	Images      string `yaml:"images"`      // the list of images that come before the pictures
	Word        string `yaml:"word"`        // as in <<<WORD_N>>>
	Text        string `yaml:"text"`        // where @name stands for a subject
	Shots       string `yaml:"shots"`       // a list whose items have such a text too; where given, Text is not read
	Max         int    `yaml:"max"`         // images, pictures and the other subjects together
	With        string `yaml:"with"`        // a field beside which
	MaxWith     int    `yaml:"max_with"`    // the bound is this
}

func (a *subjectsArgs) fields() []string {
	names := []string{a.List, a.Images, a.Text}
	for _, name := range []string{a.Shots, a.With} {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// subject is one that is shown by pictures.
type subject struct {
	index      int // in the list
	name       string
	note       string // the description, as it follows the first mention
	pictures   []any
	references string // what stands for it in a text
	mentioned  bool
	noted      bool
}

// showSubjects is for vendors that take pictures to refer to, but no
// subjects by name. The pictures follow the request's own images, so those
// keep their numbers; each @name becomes the references to its subject's
// pictures. Where there is no room for all pictures, those left over are
// taken out of the request, each subject's last ones first.
func showSubjects(b []byte, s *shape) (check, error) {
	var args subjectsArgs
	if err := decodeArgs(b, &args, s, args.fields); err != nil {
		return nil, err
	}
	for _, name := range []string{args.Name, args.Description, args.Pictures} {
		if s.at([]any{args.List, 0, name}) == nil {
			return nil, fmt.Errorf("%q is no field of the items of %s", name, args.List)
		}
	}
	if args.Max < 1 || (args.With != "") != (args.MaxWith > 0) {
		return nil, fmt.Errorf("max must be 1 or more, and so must max_with beside with")
	}
	texts := textsOf{field: args.Text, shots: args.Shots}
	if err := texts.measure(s); err != nil {
		return nil, err
	}
	return func(params map[string]any) *mediagate.Error {
		items, _ := params[args.List].([]any)
		subjects := args.subjectsOf(items)
		if len(subjects) == 0 {
			return nil
		}
		own, _ := params[args.Images].([]any)
		room := args.Max
		if _, ok := params[args.With]; ok {
			room = args.MaxWith
		}
		room -= len(own) + len(items) - len(subjects)
		if room < len(subjects) {
			return mediagate.Invalid(args.List, "%s has more subjects than can be shown beside the rest: a picture of each must fit", args.List)
		}
		share(subjects, room)
		n := len(own)
		for _, sub := range subjects {
			references := make([]string, len(sub.pictures))
			for i := range references {
				n++
				references[i] = fmt.Sprintf("<<<%s_%d>>>", args.Word, n)
			}
			sub.references = strings.Join(references, " ")
		}
		if err := texts.replace(params, func(text string, bound int, read bool) (string, bool) {
			return mention(text, subjects, bound, read)
		}, fmt.Sprintf("with the references that stand for the names of %s", args.List)); err != nil {
			return err
		}
		if _, ok := params[args.Shots]; !ok {
			text, _ := params[args.Text].(string)
			params[args.Text] = putInFront(text, subjects, texts.bound)
		}
		shown := slices.Clone(items)
		for _, sub := range subjects {
			item, _ := items[sub.index].(map[string]any)
			item = maps.Clone(item)
			item[args.Pictures] = sub.pictures
			shown[sub.index] = item
		}
		params[args.List] = shown
		return nil
	}, nil
}

func (a *subjectsArgs) subjectsOf(items []any) []*subject {
	var subjects []*subject
	for i, item := range items {
		fields, _ := item.(map[string]any)
		name, ok := fields[a.Name].(string)
		if !ok {
			continue
		}
		sub := &subject{index: i, name: strings.TrimSpace(name)}
		sub.pictures, _ = fields[a.Pictures].([]any)
		// A description is only an addition: one that would be read as a
		// reference is left out.
		if text, _ := fields[a.Description].(string); !strings.Contains(text, "<<<") {
			sub.note = " (" + strings.TrimSpace(text) + ")"
		}
		subjects = append(subjects, sub)
	}
	return subjects
}

// share divides room between the subjects: a picture each, then a second one
// each, and so on while there are any.
func share(subjects []*subject, room int) {
	counts := make([]int, len(subjects))
	for round := 0; room > 0; round++ {
		before := room
		for i, sub := range subjects {
			if room > 0 && len(sub.pictures) > round {
				counts[i]++
				room--
			}
		}
		if room == before {
			break
		}
	}
	for i, sub := range subjects {
		sub.pictures = sub.pictures[:counts[i]]
	}
}

// mention puts each subject's references in the place of its @name. With
// note, the first mention of each is followed by its description, if that
// fits. It fails when the text gets longer than bound.
func mention(text string, subjects []*subject, bound int, note bool) (string, bool) {
	type piece struct {
		text    string
		subject *subject
	}
	var pieces []piece
	length, start, end := 0, 0, -1 // end of the last mention
	add := func(text string, sub *subject) {
		if text != "" {
			pieces = append(pieces, piece{text, sub})
			length += utf8.RuneCountInString(text)
		}
	}
	for i := 0; i < len(text); i++ {
		// An @ within a word belongs to an address, unless the word is a
		// mention itself.
		if text[i] != '@' || (i > 0 && i != end && wordByte(text[i-1])) {
			continue
		}
		if sub := named(text[i+1:], subjects); sub != nil {
			add(text[start:i], nil)
			add(sub.references, sub)
			start = i + 1 + len(sub.name)
			end = start
			i = start - 1
		}
	}
	add(text[start:], nil)
	if length > bound {
		return "", false
	}
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(p.text)
		if p.subject == nil || !note {
			continue
		}
		p.subject.mentioned = true
		if more := utf8.RuneCountInString(p.subject.note); !p.subject.noted && length+more <= bound {
			b.WriteString(p.subject.note)
			p.subject.noted = true
			length += more
		}
	}
	return b.String(), true
}

// putInFront brings in the subjects that no text mentions, as far as there is
// room: their pictures are there in any case.
func putInFront(text string, subjects []*subject, bound int) string {
	var front strings.Builder
	length := utf8.RuneCountInString(text)
	for _, sub := range subjects {
		if sub.mentioned {
			continue
		}
		for _, words := range []string{sub.references + sub.note + " ", sub.references + " "} {
			if more := utf8.RuneCountInString(words); length+more <= bound {
				front.WriteString(words)
				length += more
				break
			}
		}
	}
	return front.String() + text
}

// named finds the subject whose name text begins with: the longest one, and
// not a part of a longer word.
func named(text string, subjects []*subject) *subject {
	var found *subject
	for _, sub := range subjects {
		rest, ok := strings.CutPrefix(text, sub.name)
		if !ok || (found != nil && len(found.name) >= len(sub.name)) {
			continue
		}
		last, _ := utf8.DecodeLastRuneInString(sub.name)
		next, _ := utf8.DecodeRuneInString(rest)
		if !inWord(last) || !inWord(next) {
			found = sub
		}
	}
	return found
}

func wordByte(c byte) bool { return c < utf8.RuneSelf && inWord(rune(c)) }

// inWord reports what continues a word in scripts that put blanks between
// words. The others run on after a name.
func inWord(r rune) bool {
	return (r == '_' || unicode.In(r, unicode.L, unicode.M, unicode.N)) &&
		!unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
			unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// textsOf are a text of the request and, where it is given in shots, theirs.
type textsOf struct {
	field, shots     string
	bound, shotBound int
}

// measure reads the bounds from the schema.
func (t *textsOf) measure(s *shape) error {
	t.bound = int(s.properties[t.field].maxLength)
	if t.bound == 0 {
		return fmt.Errorf("%s has no maxLength", t.field)
	}
	if t.shots == "" {
		return nil
	}
	text := s.at([]any{t.shots, 0, t.field})
	if text == nil || text.maxLength == 0 {
		return fmt.Errorf("%s has no items with a %s and its maxLength", t.shots, t.field)
	}
	t.shotBound = int(text.maxLength)
	return nil
}

// replace rewrites each text. The function is told the bound and whether the
// vendor reads this one: where there are shots, it reads theirs only. When
// it fails, why says what made the text too long.
func (t *textsOf) replace(params map[string]any, rewrite func(text string, bound int, read bool) (string, bool), why string) *mediagate.Error {
	shots, inShots := params[t.shots].([]any)
	tooLong := func(path []any, bound int) *mediagate.Error {
		return problem{path: path, text: fmt.Sprintf("must be a string of at most %d characters, %s", bound, why)}.err()
	}
	text, _ := params[t.field].(string)
	text, ok := rewrite(text, t.bound, !inShots)
	if !ok {
		return tooLong([]any{t.field}, t.bound)
	}
	if !inShots {
		params[t.field] = text
		return nil
	}
	rewritten := make([]any, len(shots))
	for i, item := range shots {
		shot, _ := item.(map[string]any)
		shot = maps.Clone(shot)
		words, _ := shot[t.field].(string)
		if shot[t.field], ok = rewrite(words, t.shotBound, true); !ok {
			return tooLong([]any{t.shots, i, t.field}, t.shotBound)
		}
		rewritten[i] = shot
	}
	params[t.field], params[t.shots] = text, rewritten
	return nil
}

// avoid is for vendors without a field for what must not be seen: its words
// go to the end of the text, and of each shot where there are shots.
func avoid(b []byte, s *shape) (check, error) {
	var args struct {
		Field string `yaml:"field"`
		Text  string `yaml:"text"`
		Shots string `yaml:"shots"`
	}
	if err := decodeArgs(b, &args, s, func() []string { return []string{args.Field, args.Text, cmp.Or(args.Shots, args.Text)} }); err != nil {
		return nil, err
	}
	texts := textsOf{field: args.Text, shots: args.Shots}
	if err := texts.measure(s); err != nil {
		return nil, err
	}
	return func(params map[string]any) *mediagate.Error {
		words, _ := params[args.Field].(string)
		words = strings.TrimSpace(words)
		if words != "" {
			words = "\nAvoid: " + words
			err := texts.replace(params, func(text string, bound int, read bool) (string, bool) {
				if !read {
					return text, true
				}
				text = strings.TrimRightFunc(text, unicode.IsSpace) + words
				return text, utf8.RuneCountInString(text) <= bound
			}, fmt.Sprintf("with the %s that is added to it", args.Field))
			if err != nil {
				return err
			}
		}
		delete(params, args.Field)
		return nil
	}, nil
}
