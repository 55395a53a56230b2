package moderation

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// The bounds of lists, which bound their time and memory.
const (
	maxFileBytes = 4 << 20
	maxEntries   = 100_000 // of all lists
	maxPatterns  = 200     // of all lists: each pattern reads every text
	maxEntry     = 200     // characters of an entry or pattern
	maxProblems  = 10      // reported of one file
)

// rule names a line of a list.
type rule struct {
	file string // without the folder
	line int
}

// String names the rule for logs, without the line's content.
func (r rule) String() string { return fmt.Sprintf("%s:%d", r.file, r.line) }

type entry struct {
	rule
	own []rune // in the form of glyph.own
}

type pattern struct {
	rule
	expression *regexp.Regexp
}

// Lists are the compiled files of words. They are immutable.
type Lists struct {
	automaton *automaton
	entries   [][]entry // by word of the automaton: the entries that look alike
	patterns  []pattern
	count     int
}

// Len returns the number of entries and patterns.
func (l *Lists) Len() int { return l.count }

// Load reads lists. A line is a word, a phrase, or a regular expression between slashes. Blank
// lines and those that begin with # are ignored. Its error joins all problems, each with path and
// line, and quotes nothing.
func Load(paths []string) (*Lists, error) {
	l := &Lists{}
	var words [][]rune
	places := map[string]int{}
	var problems []error
	for _, path := range paths {
		text, err := ReadFile(path)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", path, err))
			continue
		}
		before, wrong := l.count, 0
		for n, line := range lines(string(text)) {
			at := rule{filepath.Base(path), n}
			word, seen, err := l.add(at, line)
			switch {
			case err != nil:
				if wrong++; wrong <= maxProblems {
					problems = append(problems, fmt.Errorf("%s:%d: %w", path, n, err))
				}
			case word.own != nil:
				i, ok := places[string(seen)]
				if !ok {
					i = len(words)
					places[string(seen)] = i
					words, l.entries = append(words, seen), append(l.entries, nil)
				}
				l.entries[i] = append(l.entries[i], word)
			}
		}
		if wrong > maxProblems {
			problems = append(problems, fmt.Errorf("%s: %d more lines are wrong", path, wrong-maxProblems))
		}
		if l.count == before && wrong == 0 {
			problems = append(problems, fmt.Errorf("%s: holds no word and no pattern", path))
		}
	}
	if l.count > maxEntries {
		problems = append(problems, fmt.Errorf("%d words and patterns are more than %d", l.count, maxEntries))
	}
	if len(l.patterns) > maxPatterns {
		problems = append(problems, fmt.Errorf("%d patterns are more than %d", len(l.patterns), maxPatterns))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	l.automaton = newAutomaton(words)
	return l, nil
}

// ReadFile reads a file of words, within a bound. It refuses anything but a regular file: a pipe
// might block it.
func ReadFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, unnamed(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, unnamed(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	switch {
	case err != nil:
		return nil, unnamed(err)
	case len(text) > maxFileBytes:
		return nil, fmt.Errorf("is larger than %d bytes", maxFileBytes)
	}
	return text, nil
}

// unnamed returns the error without the path, which its context has already.
func unnamed(err error) error {
	if at, ok := errors.AsType[*os.PathError](err); ok {
		return at.Err
	}
	return err
}

// lines yields the non-empty lines of a file by number, without the spaces around them.
func lines(text string) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		n := 0
		for line := range strings.Lines(strings.TrimPrefix(text, "\uFEFF")) {
			n++
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' && !yield(n, line) {
				return
			}
		}
	}
}

// add compiles a line. It keeps a pattern, and returns a word with the form that the automaton
// finds.
func (l *Lists) add(at rule, line string) (e entry, seen []rune, err error) {
	switch {
	case !utf8.ValidString(line):
		return entry{}, nil, errors.New("is not UTF-8")
	case utf8.RuneCountInString(line) > maxEntry:
		return entry{}, nil, fmt.Errorf("is longer than %d characters", maxEntry)
	case line[0] == '/':
		p, err := compile(at, line)
		if err == nil {
			l.patterns = append(l.patterns, p)
			l.count++
		}
		return entry{}, nil, err
	}
	e.rule = at
	glyphs, letters := read(line).glyphs, 0
	for _, g := range glyphs {
		e.own, seen = append(e.own, g.own), append(seen, g.small)
		if g.class != classNone {
			letters++
		}
	}
	switch {
	case letters == 0:
		return entry{}, nil, errors.New("holds no letter: write it as a pattern, /…/")
	case letters == 1 && (glyphs[0].class == classSpaced || glyphs[0].class == classDigit):
		return entry{}, nil, errors.New("holds one letter only: write it as a pattern, /…/")
	}
	l.count++
	return e, seen, nil
}

// compile compiles a pattern for folded texts, which have no capitals.
func compile(at rule, line string) (pattern, error) {
	source, ok := strings.CutSuffix(line[1:], "/")
	if !ok || source == "" {
		return pattern{}, errors.New("begins with a slash, but is not a pattern between two slashes, /…/")
	}
	expression, err := regexp.Compile("(?i:" + source + ")")
	if err != nil {
		return pattern{}, errors.New("is not a regular expression of RE2")
	}
	if expression.MatchString("") {
		return pattern{}, errors.New("is a pattern that matches every text")
	}
	return pattern{at, expression}, nil
}

// check finds the first rule that the text breaks.
func (l *Lists) check(t *text) (rule, bool) {
	at, ok := l.search(t.glyphs, func(g glyph) rune { return g.small })
	if !ok && slices.ContainsFunc(t.glyphs, func(g glyph) bool { return g.tall != g.small }) {
		at, ok = l.search(t.glyphs, func(g glyph) rune { return g.tall })
	}
	if ok {
		return at, true
	}
	for _, p := range l.patterns {
		if p.expression.MatchString(t.folded) || t.disguised != "" && p.expression.MatchString(t.disguised) {
			return p.rule, true
		}
	}
	return rule{}, false
}

// search finds a word among the glyphs, in one of their forms.
func (l *Lists) search(glyphs []glyph, seen func(glyph) rune) (found rule, ok bool) {
	at := int32(0)
	for i, g := range glyphs {
		at = l.automaton.next(at, seen(g))
		ok = l.automaton.found(at, func(word, length int) bool {
			from := i + 1 - length
			if !stands(glyphs, from, i+1) {
				return false
			}
			for _, e := range l.entries[word] {
				if agrees(e.own, glyphs[from:i+1]) {
					found = e.rule
					return true
				}
			}
			return false
		})
		if ok {
			return found, true
		}
	}
	return rule{}, false
}

// stands reports whether the match begins and ends at the boundaries of words, in scripts that
// have words.
func stands(glyphs []glyph, from, to int) bool {
	inside := func(i int) bool { // the glyph continues the word before it
		if i == 0 || i == len(glyphs) {
			return false
		}
		before, after := glyphs[i-1].class, glyphs[i].class
		return before == after && (before == classSpaced || before == classDigit)
	}
	return !inside(from) && !inside(to)
}

// agrees reports whether the glyphs are the entry. Glyphs of plain words must equal it, others
// may just look like it.
func agrees(own []rune, glyphs []glyph) bool {
	for i, g := range glyphs {
		if g.plain && g.own != own[i] {
			return false
		}
	}
	return true
}
