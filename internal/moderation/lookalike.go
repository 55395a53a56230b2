package moderation

import (
	"iter"
	"sync"
	"unicode"
	"unicode/utf8"

	"go.mau.fi/util/confusable"
	"golang.org/x/text/unicode/norm"
)

// class says how a character takes part in words.
type class uint8

const (
	classNone     class = iota // a separator
	classSpaced                // a letter of a script that separates its words
	classUnspaced              // a letter of a script that does not
	classHangul                // Hangul: words have spaces between them, and endings
	classDigit
)

// alphabet is a script whose letters can look like those of another.
type alphabet uint8

const (
	alphabetOther alphabet = iota
	alphabetLatin
	alphabetGreek
	alphabetCyrillic
	alphabetArmenian
	alphabetCherokee
	alphabetCoptic
	alphabetLisu
)

// imitates reports whether the alphabet's letters can look like Latin ones.
func (a alphabet) imitates() bool { return a > alphabetLatin }

var alphabets = [...]*unicode.RangeTable{
	alphabetLatin: unicode.Latin, alphabetGreek: unicode.Greek, alphabetCyrillic: unicode.Cyrillic,
	alphabetArmenian: unicode.Armenian,
	alphabetCherokee: unicode.Cherokee, alphabetCoptic: unicode.Coptic, alphabetLisu: unicode.Lisu,
}

// unspaced are the scripts that write words without spaces.
var unspaced = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo, unicode.Yi,
	unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan,
}

// smallCapitals are the Latin letters of Unicode's phonetic extensions, each followed by the letter in
// its name. The table of confusables lacks them, or maps them to other letters.
const smallCapitals = "ᴀaʙbᴄcᴅdᴇeꜰfɢgʜhɪiᴊjᴋkʟlᴍmɴnᴏoᴘpꞯqʀrꜱsᴛtᴜuᴠvᴡwʏyᴢz"

// tables holds what is known about single characters. Where there are many of a kind, an array
// covers the basic plane.
type tables struct {
	shown     [1 << 16]rune // see findShown
	classes   [1 << 16]class
	alphabets [1 << 16]alphabet
	latin     map[rune]rune // the small Latin letter that a letter looks like
}

// known builds the tables on first use.
var known = sync.OnceValue(func() *tables {
	t := &tables{latin: map[rune]rune{}}
	letters := []rune(smallCapitals)
	for i := 0; i < len(letters); i += 2 {
		t.latin[letters[i]] = letters[i+1]
	}
	imitating := func(do func(r rune)) {
		for a := alphabetLatin; a <= alphabetLisu; a++ {
			for r := range runes(alphabets[a]) {
				if r >= utf8.RuneSelf && unicode.IsLetter(r) && t.latin[r] == 0 {
					do(r)
				}
			}
		}
	}
	imitating(func(r rune) {
		if l, ok := t.look(r); ok {
			t.latin[r] = l
		}
	})
	// A letter that looks like no Latin one itself gets the lookalike of its other case.
	imitating(func(r rune) {
		if l, ok := t.latin[unicode.ToUpper(r)]; ok {
			t.latin[r] = l
		} else if l, ok := t.latin[unicode.ToLower(r)]; ok {
			t.latin[r] = l
		}
	})
	for r := range rune(1 << 16) {
		t.shown[r], t.classes[r], t.alphabets[r] = t.findShown(r), findClass(r), findAlphabet(r)
	}
	return t
})

// look returns the Latin letter that Unicode's confusables list for a letter.
func (t *tables) look(r rune) (rune, bool) {
	var seen []rune
	for _, r := range norm.NFKD.String(confusable.GetReplacement(r)) {
		if !unicode.IsMark(r) {
			seen = append(seen, r)
		}
	}
	if len(seen) != 1 {
		return 0, false
	}
	l := lower(seen[0])
	if small, ok := t.latin[l]; ok {
		l = small
	}
	return l, 'a' <= l && l <= 'z'
}

func runes(table *unicode.RangeTable) iter.Seq[rune] {
	return func(yield func(rune) bool) {
		for _, span := range table.R16 {
			for r := rune(span.Lo); r <= rune(span.Hi); r += rune(span.Stride) {
				if !yield(r) {
					return
				}
			}
		}
		for _, span := range table.R32 {
			for r := rune(span.Lo); r <= rune(span.Hi); r += rune(span.Stride) {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// findShown returns what a character of a decomposed text shows: the Latin letter if it is one
// with a stroke or the like, and -1 if it is invisible by itself, such as accents, joiners,
// direction marks, variation selectors and fillers.
func (t *tables) findShown(r rune) rune {
	switch {
	case r == 0x3099, r == 0x309a: // they change the sound of a kana
		return r
	case unicode.IsSpace(r):
		return r
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector),
		r == tatweel:
		return -1
	case unicode.IsMark(r) && unicode.In(r, accented...):
		return -1
	case 0x1f150 <= r && r <= 0x1f169: // white letters in black circles, which have no decomposition
		return 'A' + r - 0x1f150
	case 0x1f170 <= r && r <= 0x1f189: // the same in squares
		return 'A' + r - 0x1f170
	case t.latin[r] != 0 && unicode.Is(unicode.Latin, r):
		return t.latin[r]
	default:
		return r
	}
}

// tatweel stretches an Arabic word.
const tatweel = 0x0640

// accented are the scripts whose marks are left out. In other scripts marks work like letters.
var accented = []*unicode.RangeTable{
	unicode.Inherited, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Coptic, unicode.Hebrew, unicode.Arabic,
}

func findClass(r rune) class {
	switch {
	case unicode.Is(unicode.Hangul, r):
		return classHangul
	case unicode.In(r, unspaced...) && !unicode.IsPunct(r) && !unicode.IsSymbol(r), r == 0x30fc, r == 0x3099, r == 0x309a:
		return classUnspaced
	case unicode.IsNumber(r):
		return classDigit
	case unicode.IsLetter(r), unicode.IsMark(r):
		return classSpaced
	default:
		return classNone
	}
}

func findAlphabet(r rune) alphabet {
	for a := alphabetLatin; a <= alphabetLisu; a++ {
		if unicode.Is(alphabets[a], r) {
			return a
		}
	}
	return alphabetOther
}

// shownAs is findShown by table.
func shownAs(r rune) rune {
	t := known()
	if int(r) < len(t.shown) {
		return t.shown[r]
	}
	return t.findShown(r)
}

func classOf(r rune) class {
	if t := known(); int(r) < len(t.classes) {
		return t.classes[r]
	}
	return findClass(r)
}

func alphabetOf(r rune) alphabet {
	if t := known(); int(r) < len(t.alphabets) {
		return t.alphabets[r]
	}
	return findAlphabet(r)
}

// like returns the small Latin letter that a letter looks like, or other if there is none.
func like(r, other rune) rune {
	if r < utf8.RuneSelf {
		return other
	}
	if l, ok := known().latin[r]; ok {
		return l
	}
	return other
}
