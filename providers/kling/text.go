package kling

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The vendor's bounds of its texts, in characters. What we add must fit too.
const (
	maxPrompt     = 2500 // of the older generation
	maxNewer      = 3072 // of the newer one
	maxShotPrompt = 512
)

// The references that omni-video takes together: images, pictures of subjects
// and subjects by id.
const (
	maxReferences          = 7
	maxReferencesWithVideo = 4
)

// wordFrames says in the texts what omni-video has no fields for.
func (p *params) wordFrames() error {
	if err := p.avoid(); err != nil {
		return err
	}
	subjects, err := p.numberSubjects(maxReferences)
	if err != nil {
		return err
	}
	return p.mentionSubjects(subjects)
}

// wordReferences is wordFrames where the client's images are references too.
func (p *params) wordReferences() error {
	if err := p.referToFirst(); err != nil {
		return err
	}
	room := maxReferences
	if len(p.VideoList) > 0 {
		room = maxReferencesWithVideo
	}
	subjects, err := p.numberSubjects(room)
	if err != nil {
		return err
	}
	// A client can refer to its own images only. A prompt that refers to the
	// pictures of subjects was stored in the vendor's words.
	if slices.ContainsFunc(subjects, func(sub *subject) bool { return strings.Contains(p.Prompt, sub.references) }) {
		return nil
	}
	return p.mentionSubjects(subjects)
}

// rewrite changes each text. The function is told the bound and whether the
// vendor reads this one: of a film in shots it reads theirs only. When it
// fails, why says what made the text too long.
func (p *params) rewrite(change func(text string, bound int, read bool) (string, bool), why string) error {
	tooLong := func(field string, bound int) error {
		return invalid(field, fmt.Sprintf("must be a string of at most %d characters, %s", bound, why))
	}
	text, ok := change(p.Prompt, p.bound, !p.cut())
	if !ok {
		return tooLong("prompt", p.bound)
	}
	p.Prompt = text
	if !p.cut() {
		return nil
	}
	for i := range p.MultiPrompt {
		if p.MultiPrompt[i].Prompt, ok = change(p.MultiPrompt[i].Prompt, maxShotPrompt, true); !ok {
			return tooLong(fmt.Sprintf("multi_prompt[%d].prompt", i), maxShotPrompt)
		}
	}
	return nil
}

// avoid says what must not be seen at the end of the texts: omni-video has no
// field for it.
func (p *params) avoid() error {
	words := strings.TrimSpace(p.NegativePrompt)
	p.NegativePrompt = ""
	if words == "" {
		return nil
	}
	words = "\nAvoid: " + words
	return p.rewrite(func(text string, bound int, read bool) (string, bool) {
		if !read {
			return text, true
		}
		text = strings.TrimRightFunc(text, unicode.IsSpace) + words
		return text, utf8.RuneCountInString(text) <= bound
	}, "with the negative_prompt that is added to it")
}

var imageReference = regexp.MustCompile(`<<<image_[0-9]+>>>`)

// referToFirst puts a reference to the first image in front of a prompt that
// refers to none: the vendor would not look at it otherwise.
func (p *params) referToFirst() error {
	if len(p.ImageURLs) == 0 || imageReference.MatchString(p.Prompt) {
		return nil
	}
	const first = "<<<image_1>>>"
	p.Prompt = first + p.Prompt
	if utf8.RuneCountInString(p.Prompt) > p.bound {
		return invalid("prompt", fmt.Sprintf(
			"must be a string of at most %d characters, with the %s that is put in front when it refers to no item of image_urls", p.bound, first))
	}
	return nil
}

// subject is one that is shown by pictures.
type subject struct {
	index      int // in the list
	name       string
	note       string // the description, as it follows the first mention
	pictures   []string
	references string // what stands for it in a text
	mentioned  bool
	noted      bool
}

// numberSubjects finds the subjects by name. The vendor does not know them, it
// takes pictures to refer to. These follow the request's own images, so those
// keep their numbers. Where there is no room for all pictures, those left over
// are taken out, each subject's last ones first.
func (p *params) numberSubjects(room int) ([]*subject, error) {
	subjects := p.subjects()
	room -= len(p.ImageURLs) + len(p.ElementList) - len(subjects)
	if len(subjects) > 0 && room < len(subjects) {
		return nil, invalid("element_list", "has more subjects than can be shown beside the rest: a picture of each must fit")
	}
	share(subjects, room)
	n := len(p.ImageURLs)
	for _, sub := range subjects {
		references := make([]string, len(sub.pictures))
		for i := range references {
			n++
			references[i] = fmt.Sprintf("<<<image_%d>>>", n)
		}
		sub.references = strings.Join(references, " ")
		p.ElementList[sub.index].Pictures = sub.pictures
	}
	return subjects, nil
}

// mentionSubjects makes each @name the references to its subject's pictures.
func (p *params) mentionSubjects(subjects []*subject) error {
	if len(subjects) == 0 {
		return nil
	}
	if err := p.rewrite(func(text string, bound int, read bool) (string, bool) {
		return mention(text, subjects, bound, read)
	}, "with the references that stand for the names of element_list"); err != nil {
		return err
	}
	if !p.cut() {
		p.Prompt = putInFront(p.Prompt, subjects, p.bound)
	}
	return nil
}

func (p *params) subjects() []*subject {
	var subjects []*subject
	for i, e := range p.ElementList {
		if !e.byName() {
			continue
		}
		sub := &subject{index: i, name: strings.TrimSpace(e.Name), pictures: e.Pictures}
		// A description is only an addition: one that would be read as a
		// reference is left out.
		if !strings.Contains(e.Description, "<<<") {
			sub.note = " (" + strings.TrimSpace(e.Description) + ")"
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
