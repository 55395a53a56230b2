package kling

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The vendor's limits of texts, in characters. They also count the text that the adapter adds.
const (
	maxPrompt     = 2500 // the older generation
	maxNewer      = 3072 // the newer generation
	maxShotPrompt = 512
)

// The most references that omni-video takes: images, pictures of subjects and subjects by id
// together.
const (
	maxReferences          = 7
	maxReferencesWithVideo = 4
)

// writeFramesText adds the negative prompt and the subjects by name to the texts, because
// omni-video has no fields for them.
func (p *params) writeFramesText() error {
	if err := p.appendNegativePrompt(); err != nil {
		return err
	}
	subjects, err := p.numberSubjects(maxReferences)
	if err != nil {
		return err
	}
	return p.mentionSubjects(subjects)
}

// writeReferencesText is writeFramesText for requests whose own images are references too.
func (p *params) writeReferencesText() error {
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
	// A client can refer to its own images only. If the prompt refers to pictures of subjects, the
	// request was stored in the vendor's form.
	if slices.ContainsFunc(subjects, func(sub *subject) bool { return strings.Contains(p.Prompt, sub.references) }) {
		return nil
	}
	return p.mentionSubjects(subjects)
}

// rewrite applies change to each text. change gets the limit of the text, and whether the vendor
// reads it: in a video with shots the vendor reads only the prompts of the shots. If change fails
// because the text got too long, the error ends with why.
func (p *params) rewrite(change func(text string, bound int, read bool) (string, bool), why string) error {
	tooLong := func(field string, bound int) error {
		return invalid(field, fmt.Sprintf("must be a string of at most %d characters, %s", bound, why))
	}
	text, ok := change(p.Prompt, p.bound, !p.hasCustomShots())
	if !ok {
		return tooLong("prompt", p.bound)
	}
	p.Prompt = text
	if !p.hasCustomShots() {
		return nil
	}
	for i := range p.MultiPrompt {
		if p.MultiPrompt[i].Prompt, ok = change(p.MultiPrompt[i].Prompt, maxShotPrompt, true); !ok {
			return tooLong(fmt.Sprintf("multi_prompt[%d].prompt", i), maxShotPrompt)
		}
	}
	return nil
}

// appendNegativePrompt adds the negative prompt to the end of the texts, because omni-video has no
// field for it.
func (p *params) appendNegativePrompt() error {
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

// referToFirst puts a reference to the first image before a prompt that refers to no image. Without
// a reference the vendor would ignore the images.
func (p *params) referToFirst() error {
	if len(p.ImageURLs) == 0 || imageReference.MatchString(p.Prompt) {
		return nil
	}
	const first = "<<<image_1>>>"
	p.Prompt = first + p.Prompt
	if utf8.RuneCountInString(p.Prompt) > p.bound {
		return invalid("prompt", fmt.Sprintf(
			"must be a string of at most %d characters, with the %s that is put in front when it refers to no item of image_urls",
			p.bound, first))
	}
	return nil
}

// subject is a subject that the request shows by pictures.
type subject struct {
	index      int // in element_list
	name       string
	note       string // the description, in the form that follows the first mention
	pictures   []string
	references string // the references that replace its name in a text
	mentioned  bool
	noted      bool
}

// numberSubjects returns the subjects by name, with references to their pictures. The pictures are
// numbered after the request's own images. For example, with 2 images the first picture is
// <<<image_3>>>. If room is too small for all pictures, numberSubjects drops the last pictures of the
// subjects.
func (p *params) numberSubjects(room int) ([]*subject, error) {
	subjects := p.subjects()
	room -= len(p.ImageURLs) + len(p.ElementList) - len(subjects)
	if len(subjects) > 0 && room < len(subjects) {
		return nil, invalid("element_list",
			"has more subjects than can be shown beside the rest: a picture of each must fit")
	}
	sharePictures(subjects, room)
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

// mentionSubjects replaces each @name by the references to its subject's pictures.
func (p *params) mentionSubjects(subjects []*subject) error {
	if len(subjects) == 0 {
		return nil
	}
	if err := p.rewrite(func(text string, bound int, read bool) (string, bool) {
		return mention(text, subjects, bound, read)
	}, "with the references that stand for the names of element_list"); err != nil {
		return err
	}
	if !p.hasCustomShots() {
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
		// A description is optional. If the vendor could read it as a reference, it is left out.
		if !strings.Contains(e.Description, "<<<") {
			sub.note = " (" + strings.TrimSpace(e.Description) + ")"
		}
		subjects = append(subjects, sub)
	}
	return subjects
}

// sharePictures divides room between the subjects: one picture for each, then a second one for
// each, and so on. With room for 7, three subjects of 4 pictures get 3, 2 and 2.
func sharePictures(subjects []*subject, room int) {
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

// mention replaces each @name by the references of its subject. With note, the subject's
// description follows its first mention if it fits. mention returns false if the text is longer
// than bound.
func mention(text string, subjects []*subject, bound int, note bool) (string, bool) {
	type piece struct {
		text    string
		subject *subject
	}
	var pieces []piece
	length, start, end := 0, 0, -1 // end is the end of the last mention
	add := func(text string, sub *subject) {
		if text != "" {
			pieces = append(pieces, piece{text, sub})
			length += utf8.RuneCountInString(text)
		}
	}
	for i := 0; i < len(text); i++ {
		// An @ within a word belongs to an address, unless a mention ends right before it.
		if text[i] != '@' || (i > 0 && i != end && wordByte(text[i-1])) {
			continue
		}
		if sub := findSubject(text[i+1:], subjects); sub != nil {
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

// putInFront adds references to the subjects that no text mentions, as far as they fit. The request
// has their pictures in any case.
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

// findSubject returns the subject with the longest name that text begins with. The name must not be
// part of a longer word. It returns nil if there is none.
func findSubject(text string, subjects []*subject) *subject {
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

// inWord reports whether r continues a word, in scripts that separate words by blanks. In the other
// scripts text may follow a name directly.
func inWord(r rune) bool {
	return (r == '_' || unicode.In(r, unicode.L, unicode.M, unicode.N)) &&
		!unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
			unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}
