package moderation

import (
	"crypto/sha256"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// text is a text in the form in which it is compared. Entries of lists have the same form.
type text struct {
	folded    string  // with all its separators, for patterns
	disguised string  // folded as it looks; empty if it looks the same
	glyphs    []glyph // words, with one separator between two
}

// digest identifies the text in logs.
func (t *text) digest() [sha256.Size]byte { return sha256.Sum256([]byte(t.folded)) }

// glyph is a character in its compared forms.
type glyph struct {
	own   rune // the character itself
	small rune // the small Latin letter that it looks like, or itself
	tall  rune // the same for the capital in the text, or small
	class class
	plain bool // its word is in its own script, so only own counts
}

// blank is the separator between words.
const blank = ' '

// The tag characters, which stand for ASCII characters. They are invisible, but models read them.
const (
	firstTag = 0xE0020
	lastTag  = 0xE007E
	tagShift = 0xE0000
)

func isTag(r rune) bool { return firstTag <= r && r <= lastTag }

// readings returns the ways to read a text. A text without tag characters has one reading. A text
// with them has three: as it is, with each tag character replaced by the letter that it stands for,
// and those letters alone.
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

// vast replaces with spaces the characters that decompose into eight or more, which are whole
// formulas of prayer. They hide no words, but would make a text many times as long.
var vast = strings.NewReplacer("\uFDFA", " ", "\uFDFB", " ")

// read converts a text to the form in which it is compared.
func read(s string) *text {
	t := &text{folded: fold(s)}
	t.glyphs = make([]glyph, 0, len(s))
	var before class // class of the last glyph
	gap, visible := false, false
	for _, r := range t.folded {
		of := classOf(lower(r))
		if of == classNone {
			gap, visible = true, visible || !unicode.IsSpace(r)
			continue
		}
		// In scripts without spaces between words, a space is no separator.
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

// unmask sets disguised, the text as it looks, for patterns.
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

// fold removes the differences that do not distinguish words, except for case.
func fold(s string) string {
	if isASCII(s) {
		return strings.Map(shownAs, s)
	}
	s = norm.NFKD.String(vast.Replace(strings.ToValidUTF8(s, "\uFFFD")))
	return norm.NFC.String(sharp.Replace(withoutStrayMarks(strings.Map(shownAs, s))))
}

// withoutStrayMarks removes the marks of other scripts on letters of an alphabet that has no such
// marks. On letters of their own script they count as letters.
func withoutStrayMarks(s string) string {
	stray := false // the last letter belongs to such an alphabet
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

// sharp replaces the one letter that becomes two in capitals but has no decomposition.
var sharp = strings.NewReplacer("ß", "ss", "ẞ", "SS")

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// lower returns the form of a letter that stands for all its cases: the small form of its capital,
// since some letters have several small forms.
func lower(r rune) rune {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

// findDisguised clears plain for words that may be disguised: words that mix an alphabet with a
// lookalike, and words made only of lookalikes of Latin letters. The latter stay plain if a
// neighbouring word shows that the text is in their own script.
func (t *text) findDisguised() {
	var run []word // consecutive words of one alphabet
	settle := func() {
		genuine := false
		for _, w := range run {
			genuine = genuine || w.genuine
		}
		for _, w := range run {
			w.setPlain(genuine)
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
	genuine  bool // it has a letter that looks like no Latin one, so it is of its own script
}

func (w word) setPlain(plain bool) {
	for i := range w.glyphs {
		w.glyphs[i].plain = plain
	}
}

// wordAt returns the word that the glyphs begin with. mixed reports whether its letters are of
// several alphabets, one of which looks like another.
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
		w.genuine = w.genuine || g.small == g.own && g.tall == g.own
		n++
	}
	w.glyphs = glyphs[:n]
	return w, mixed && imitates
}
