package moderation

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func writeList(tb testing.TB, name, text string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

func mustLoad(tb testing.TB, text string) *Lists {
	tb.Helper()
	l, err := Load([]string{writeList(tb, "words.txt", text)})
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

func rulesOf(tb testing.TB, l *Lists, text string) string {
	tb.Helper()
	v, err := NewWords(l).Check(context.Background(), []string{"harmless", text})
	if err != nil || v.Unchecked != nil {
		tb.Fatal(v, err)
	}
	if !v.Refused {
		return ""
	}
	return strings.TrimPrefix(v.Rule, "words.txt:")
}

const polyglot = `# harmless stand-ins
ass
zebra crossing
Größe
cop
杀人
どく
바보
حمار
убийство
сор
nude
/gr[ae]y\s*-?\s*goo/
хлам вещь
`

func TestEvasion(t *testing.T) {
	t.Parallel()
	lists := mustLoad(t, polyglot)
	for name, c := range map[string]struct{ text, want string }{
		"as it is":                      {"an ass here", "2"},
		"alone":                         {"ass", "2"},
		"capitals":                      {"an AsS here", "2"},
		"full width":                    {"an ＡＳＳ here", "2"},
		"mathematical letters":          {"an 𝒶𝓼𝖘 here", "2"},
		"circled letters":               {"an ⓐⓢⓢ", "2"},
		"negative circled letters":      {"an 🅐🅢🅢", "2"},
		"negative squared letters":      {"an 🅰🆂🆂", "2"},
		"marks of other scripts":        {"an a\u0e31s\u0941s\u0e49", "2"},
		"small capitals":                {"an ᴀꜱꜱ", "2"},
		"control characters":            {"a\x01s\x7fs", "2"},
		"combining marks":               {"a\u0301s\u0336\u0336s\u20dd", "2"},
		"many combining marks":          {"a" + strings.Repeat("\u0301", 3000) + "ss", "2"},
		"composed letters":              {"âśş", "2"},
		"Cyrillic letter":               {"аss", "2"},
		"Cyrillic letters alone":        {"аѕѕ", "2"},
		"Cyrillic letters among others": {"a big аѕѕ on a hill", "2"},
		"Cyrillic capitals":             {"АЅЅ", "2"},
		"Greek letter":                  {"αss", "2"},
		"Greek capital":                 {"ΝUDE", "12"},
		"Greek and Cyrillic":            {"αѕѕ", "2"},
		"everything at once":            {"ＡЅ\u200b\u0301ѕ", "2"},
		"between punctuation":           {"(ass), _ass_", "2"},
		"beside digits":                 {"ass69", "2"},
		"beside Chinese":                {"一ass一", "2"},
		"phrase":                        {"a zebra crossing", "3"},
		"phrase over lines":             {"Zebra,\n\t Crossing", "3"},
		"sharp s":                       {"GRÖSSE", "4"},
		"umlaut decomposed":             {"gro\u0308ße", "4"},
		"Chinese":                       {"他在电影里杀人了", "6"},
		"Chinese with spaces":           {"杀 人", "6"},
		"Chinese with joiners":          {"杀\u200b人", "6"},
		"Japanese":                      {"これはどくです", "7"},
		"Japanese decomposed":           {"と\u3099く dokuではなくどく", "7"},
		"Korean with an ending":         {"그는 바보는", "8"},
		"Korean decomposed":             {"\u1107\u1161\u1107\u1169", "8"},
		"Arabic":                        {"هذا حمار كبير", "9"},
		"Arabic with vowels":            {"حِمَار", "9"},
		"Arabic stretched":              {"حـمـار", "9"},
		"Russian":                       {"Это УБИЙСТВО!", "10"},
		"Russian with Latin letters":    {"убийcтвo", "10"},
		"Russian look-alike in phrase":  {"хлам, вещь", "14"},
		"Russian phrase half disguised": {"xлам вещь", "14"},
		"pattern":                       {"some Grey  - Goo", "13"},
		"pattern disguised":             {"some gгеу goо", "13"},
		"pattern of accents":            {"gräy goo", "13"},
		"first of the text":             {"nude ass", "12"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := rulesOf(t, lists, c.text); got != c.want {
				t.Errorf("%q breaks %q, want %q", c.text, got, c.want)
			}
		})
	}
}

func TestFalsePositives(t *testing.T) {
	t.Parallel()
	lists := mustLoad(t, polyglot)
	for name, text := range map[string]string{
		"within a word":                 "a class of grass, assassins, Massachusetts",
		"beginning of a word":           "assorted assets",
		"a word of two":                 "a zebra is crossing",
		"apart":                         "a s s",
		"over an apostrophe":            "Bass's",
		"other letters":                 "as",
		"digits for letters":            "a55",
		"a script's own word":           "он нашёл сотню сорт", // no list's
		"Latin word of a Russian list":  "a cup of copper",
		"Russian word like a Latin one": "нельзя выносить соры из избы",
		"Greek":                         "το νερό και η θάλασσα",
		"Japanese other sound":          "とく",
		"Chinese in two sentences":      "不要杀。人们来了",
		"Korean":                        "바다 보기",
		"Arabic":                        "الحمارة",
		"German":                        "die Klasse, der Pass, die Masse, großer",
		"brand names":                   "iPhone15 AC/DC C++",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := rulesOf(t, lists, text); got != "" {
				t.Errorf("%q breaks line %s", text, got)
			}
		})
	}
}

// TestOtherLanguages checks that a word of one language does not match a similar-looking entry of
// another.
func TestOtherLanguages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ list, text, want string }{
		"Russian beside an English list":  {"cop", "нельзя выносить сор из избы", ""},
		"English beside a Russian list":   {"рот", "a pot of tea", ""},
		"English capitals beside Russian": {"кот", "KOT", ""},
		"Russian beside Russian":          {"рот", "открой рот", "1"},
		"Greek capitals":                  {"νέα", "ΤΑ ΝΕΑ ΤΗΣ ΗΜΕΡΑΣ", "1"},
		"Greek beside an English list":    {"vea", "διαβάζω τα νέα κάθε ημέρα", ""},
		"English in Greek letters":        {"vea", "the νεα of it", "1"},
		"German umlaut":                   {"fuß", "Der FUSS des Berges", "1"},
		"Turkish":                         {"kız", "KIZ", "1"},
		"Thai has no spaces":              {"ฆ่า", "เขาจะฆ่าคน", "1"},
		"Hindi":                           {"बम", "यह बम है", "1"},
		"Hindi vowels tell words apart":   {"बम", "यह बाम है", ""},
		"Hebrew with points":              {"פצצה", "פְּצָצָה", "1"},
		"Hindi within a word":             {"बम", "बमबारी", ""},
		"Chinese with a sentence's end":   {"炸弹", "炸。弹", ""},
		"Chinese, wide spaces":            {"炸弹", "炸\u3000弹", "1"},
		"katakana of half width":          {"バカ", "\uff8a\uff9e\uff76", "1"},
		"Korean has spaces":               {"폭탄", "폭 탄", ""},
		"Polish without its strokes":      {"małpa", "MALPA", "1"},
		"Norwegian":                       {"søppel", "soppel", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := rulesOf(t, mustLoad(t, c.list), c.text); got != c.want {
				t.Errorf("%q breaks %q, want %q", c.text, got, c.want)
			}
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"no words":          {"# only words about words\n\n", ": holds no word and no pattern"},
		"no text":           {"", ": holds no word and no pattern"},
		"not UTF-8":         {"fine\nno\xffne\n", ":2: is not UTF-8"},
		"punctuation":       {"fine\n+++\n", ":2: holds no letter: write it as a pattern, /…/"},
		"one letter":        {"c++", ":1: holds one letter only: write it as a pattern, /…/"},
		"one joiner":        {"\u200d", ":1: holds no letter: write it as a pattern, /…/"},
		"half a pattern":    {"/etc", ":1: begins with a slash, but is not a pattern between two slashes, /…/"},
		"an empty pattern":  {"//", ":1: begins with a slash, but is not a pattern between two slashes, /…/"},
		"no expression":     {"/(a/", ":1: is not a regular expression of RE2"},
		"another dialect":   {"/(?=a)/", ":1: is not a regular expression of RE2"},
		"fits everything":   {"/a*/", ":1: is a pattern that matches every text"},
		"a long line":       {strings.Repeat("a", maxEntry+1), ":1: is longer than 200 characters"},
		"every wrong line":  {"/(/\nb\n", ":1: is not a regular expression of RE2\nPATH:2: holds one letter only: write it as a pattern, /…/"},
		"many patterns":     {strings.Repeat("/a/\n", maxPatterns+1), "201 patterns are more than 200"},
		"many words":        {strings.Repeat("aa\n", maxEntries+1), "100001 words and patterns are more than 100000"},
		"more than is told": {strings.Repeat("+\n", 12), "PATH: 2 more lines are wrong"},
		"a large file":      {strings.Repeat("a\n", maxFileBytes/2+1), ": is larger than 4194304 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := writeList(t, "words.txt", c.text)
			_, err := Load([]string{path})
			if want := strings.ReplaceAll(c.want, "PATH", path); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
	for _, path := range []string{t.TempDir(), "/dev/zero", filepath.Join(t.TempDir(), "none")} {
		if _, err := Load([]string{path}); err == nil || !strings.HasPrefix(err.Error(), path+": ") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestLoadSeveral checks that lists add up and that each rule is named by its file and line.
func TestLoadSeveral(t *testing.T) {
	t.Parallel()
	l, err := Load([]string{writeList(t, "a.txt", "\ufeffone two\r\n\n three \r\n"), writeList(t, "b.txt", "three\n/fo{2}/\n")})
	if err != nil || l.Len() != 4 {
		t.Fatal(l, err)
	}
	for text, want := range map[string]string{"one  two": "a.txt:1", "three": "a.txt:3", "FOO": "b.txt:2", "two": ""} {
		v, err := NewWords(l).Check(t.Context(), []string{text})
		if err != nil || v.Refused != (want != "") || v.Rule != want {
			t.Errorf("%s: %+v, %v", text, v, err)
		}
	}
}

// What texts are compared as does not change when it is compared again, and is
// what the entry of the same text is. Nothing that a text holds breaks that.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"", "ass", "ＡＳＳ", "a\u200ds\u0301s", "аѕѕ", "İıſßẞ", "\uFDFA\uFDFB", "と\u3099", "\u1107\u1161", "ǅ ŉ ΐ ᾳ ﬃ", "\xff\xfe", "\u0345\u03b1",
		"杀 人", "हिन्दी", "\u0f77\u0f81", "Ꭰ ꭰ ᏸ", "\u0130\u0307", "ΑΣ ας", "\U0001d7ce 𝟎", "ﾊﾞｶ", "\u2126\u212b", "a\u0338=\u0338", "ᴀꜱꜱ", "\u00a0\u3000\u2028",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := read(s)
		if again := read(once.folded); again.folded != once.folded {
			t.Errorf("%q is read as %q, and that as %q", s, once.folded, again.folded)
		}
		if n := len([]rune(once.folded)); n > 8*len(s) {
			t.Errorf("%d bytes are read as %d characters", len(s), n)
		}
		var l Lists
		e, seen, err := l.add(rule{}, "x"+s)
		if err != nil || e.own == nil {
			return
		}
		l.automaton, l.entries = newAutomaton([][]rune{seen}), [][]entry{{e}}
		if _, ok := l.check(read("x" + s)); !ok {
			t.Errorf("%q is not found in itself", "x"+s)
		}
	})
}
