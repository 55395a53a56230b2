package moderation

import (
	"strings"
	"testing"
	"unicode"
)

// TestDefaultIgnorables checks that no default-ignorable character separates the letters of a
// word.
func TestDefaultIgnorables(t *testing.T) {
	t.Parallel()
	lists := mustLoad(t, polyglot)
	for r := range rune(unicode.MaxRune + 1) {
		if !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Cf) {
			continue
		}
		for _, c := range []struct{ text, want string }{
			{"an a" + string(r) + "ss", "2"},
			{"zebra " + string(r) + " crossing", "3"},
			{"杀" + string(r) + "人", "6"},
			{"바" + string(r) + "보", "8"},
			{"убий" + string(r) + "ство", "10"},
			{"gr" + string(r) + "ay g" + string(r) + "oo", "13"},
		} {
			if got := rulesOf(t, lists, c.text); got != c.want {
				t.Errorf("%U in %q: breaks %q, want %q", r, c.text, got, c.want)
			}
		}
	}
}

// tagged writes ASCII in tag characters.
func tagged(s string) string {
	return strings.Map(func(r rune) rune { return r + 0xE0000 }, s)
}

// TestTagCharacters checks that the list reads text in tag characters: it is invisible, but a
// model reads it.
func TestTagCharacters(t *testing.T) {
	t.Parallel()
	lists := mustLoad(t, polyglot)
	for name, c := range map[string]struct{ text, want string }{
		"alone":                  {tagged("ass"), "2"},
		"behind a word":          {"a cat" + tagged("ass"), "2"},
		"within a word":          {"a c" + tagged("an ass here") + "at", "2"},
		"capitals":               {"a cat" + tagged("An ASS"), "2"},
		"phrase":                 {"a cat" + tagged("zebra crossing"), "3"},
		"pattern":                {"a cat" + tagged("gray goo"), "13"},
		"beside visible letters": {"an a" + tagged("s") + "s", "2"},
		"with a begin and an end": {
			"a cat\U000E0001" + tagged("ass") + "\U000E007F", "2",
		},
		"in parts":       {"a cat" + tagged("as") + " and a dog" + tagged("s"), "2"},
		"harmless":       {"a cat" + tagged("grass"), ""},
		"flag of a land": {"the \U0001F3F4" + tagged("gbeng") + "\U000E007F of England", ""},
	} {
		if got := rulesOf(t, lists, c.text); got != c.want {
			t.Errorf("%s: %q breaks %q, want %q", name, c.text, got, c.want)
		}
	}
}
