package moderation

import (
	"crypto/sha256"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// text is what is compared of a text: entries of lists have the same form.
type text struct {
	folded    string  // with all its separators, for patterns
	disguised string  // the same as it is seen, where that is something else
	glyphs    []glyph // words, one separator between them
}

// digest names the text in logs.
func (t *text) digest() [sha256.Size]byte { return sha256.Sum256([]byte(t.folded)) }

// glyph is a character of a text.
type glyph struct {
	own   rune // itself
	small rune // the Latin letter that it looks like, as a small one; else itself
	tall  rune // the same of the capital that stands there; else small
	class class
	plain bool // the word around it is what it looks like: it is read as it is
}

// blank is the separator of words.
const blank = ' '

// The tag characters that stand for those of ASCII. They draw nothing, but a
// model reads them.
const (
	firstTag = 0xE0020
	lastTag  = 0xE007E
	tagShift = 0xE0000
)

func isTag(r rune) bool { return firstTag <= r && r <= lastTag }

// readings returns the texts that a text can be read as: as it is drawn, without
// its tag characters, and where it has any, with them as letters in their
// places, and their letters alone.
func readings(s string) []string {
	if !strings.ContainsFunc(s, isTag) {
		return []string{s}
	}
	var inPlace, alone strings.Builder
	for _, r := range s {
		if isTag(r) {
			r -= tagShift
			alone.WriteRune(r)
		}
		inPlace.WriteRune(r)
	}
	return []string{s, inPlace.String(), alone.String()}
}

// vast are the characters that one turns into eight and more when it is
// decomposed: whole formulas of prayer. Nobody hides a word in them, and they
// would make a text many times as long.
var vast = strings.NewReplacer("\uFDFA", " ", "\uFDFB", " ")

// read brings a text into the form in which texts are compared.
func read(s string) *text {
	t := &text{folded: fold(s)}
	t.glyphs = make([]glyph, 0, len(s))
	var before class // of the last glyph
	gap, visible := false, false
	for _, r := range t.folded {
		of := classOf(lower(r))
		if of == classNone {
			gap, visible = true, visible || !unicode.IsSpace(r)
			continue
		}
		// Spaces between characters of scripts that have none are no separators.
		if gap && len(t.glyphs) > 0 && (visible || before != classUnspaced || of != classUnspaced) {
			t.glyphs = append(t.glyphs, glyph{own: blank, small: blank, tall: blank, plain: true})
		}
		gap, visible, before = false, false, of
		own := lower(r)
		small := like(own, own)
		tall := small
		if own != r {
			tall = like(r, small)
		}
		t.glyphs = append(t.glyphs, glyph{own: own, small: small, tall: tall, class: of, plain: true})
	}
	t.folded = strings.Map(lower, t.folded)
	t.findDisguised()
	t.unmask()
	return t
}

// unmask writes the text as it is seen, for patterns.
func (t *text) unmask() {
	if !slices.ContainsFunc(t.glyphs, func(g glyph) bool { return !g.plain && g.tall != g.own }) {
		return
	}
	i := 0
	t.disguised = strings.Map(func(r rune) rune {
		if classOf(r) == classNone {
			return r
		}
		for t.glyphs[i].class == classNone {
			i++
		}
		g := t.glyphs[i]
		i++
		if g.plain {
			return r
		}
		return g.tall
	}, t.folded)
}

// fold removes from a text what does not tell words apart, but for the case of
// letters.
func fold(s string) string {
	if isASCII(s) {
		return strings.Map(shownAs, s)
	}
	s = norm.NFKD.String(vast.Replace(strings.ToValidUTF8(s, "\uFFFD")))
	return norm.NFC.String(sharp.Replace(withoutStrayMarks(strings.Map(shownAs, s))))
}

// withoutStrayMarks leaves out the marks of other scripts on letters of an alphabet,
// of which none has such marks. On letters of their own they are letters too.
func withoutStrayMarks(s string) string {
	stray := false // what came last was such a letter
	return strings.Map(func(r rune) rune {
		switch {
		case !unicode.IsMark(r):
			stray = alphabetOf(r) != alphabetOther
		case stray:
			return -1
		}
		return r
	}, s)
}

// sharp is the one letter that stands for two in another case, beside those
// that are decomposed.
var sharp = strings.NewReplacer("ß", "ss", "ẞ", "SS")

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// lower is the letter in the one case that stands for all. It goes by way of the
// capital, since some letters have several small forms.
func lower(r rune) rune {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

// findDisguised marks the words that are not plain: those that mix an alphabet
// with others that look like it, and those wholly of letters that look like
// Latin ones, unless words beside them show that they are in their own script.
func (t *text) findDisguised() {
	var run []word // consecutive ones of one alphabet
	settle := func() {
		ordinary := false
		for _, w := range run {
			ordinary = ordinary || w.ordinary
		}
		for _, w := range run {
			w.setPlain(ordinary)
		}
		run = run[:0]
	}
	for i := 0; i < len(t.glyphs); {
		if t.glyphs[i].class != classSpaced {
			i++
			continue
		}
		w, mixed := wordAt(t.glyphs[i:])
		i += len(w.glyphs)
		if len(run) > 0 && run[0].alphabet != w.alphabet {
			settle()
		}
		switch {
		case mixed:
			settle()
			w.setPlain(false)
		case w.alphabet.imitates():
			run = append(run, w)
		}
	}
	settle()
}

// word is a run of letters.
type word struct {
	glyphs   []glyph
	alphabet alphabet
	ordinary bool // it has a letter that looks like no Latin one
}

func (w word) setPlain(plain bool) {
	for i := range w.glyphs {
		w.glyphs[i].plain = plain
	}
}

// wordAt is the word that the glyphs begin with. mixed reports letters of several
// alphabets, one of which looks like another.
func wordAt(glyphs []glyph) (w word, mixed bool) {
	n, imitates := 0, false
	for n < len(glyphs) && glyphs[n].class == classSpaced {
		g := glyphs[n]
		a := alphabetOf(g.own)
		if n == 0 {
			w.alphabet = a
		}
		mixed = mixed || a != w.alphabet
		imitates = imitates || a.imitates()
		w.ordinary = w.ordinary || g.small == g.own && g.tall == g.own
		n++
	}
	w.glyphs = glyphs[:n]
	return w, mixed && imitates
}
