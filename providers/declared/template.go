package declared

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// template is a path with expressions in braces, such as /tasks/{$job}.
type template struct {
	texts []string // one more than holes
	holes []*expression
}

var hole = regexp.MustCompile(`\{([^{}]*)\}`)

// template reads a path below base_url.
func (v value) template() *template {
	if !v.isSet() {
		return nil
	}
	text := v.text()
	t := &template{texts: hole.Split(text, -1)}
	plain := strings.Join(t.texts, "x")
	path, _, _ := strings.Cut(plain, "?")
	odd := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`{}\#"<>`, r) }
	if !strings.HasPrefix(plain, "/") || strings.HasPrefix(plain, "//") ||
		slices.Contains(strings.Split(path, "/"), "..") || strings.ContainsFunc(plain, odd) {
		v.addFault("must be a path that begins with /, without .., with expressions in braces")
		return nil
	}
	for _, match := range hole.FindAllStringSubmatch(text, -1) {
		e, _, err := compile(match[1])
		if err != nil {
			v.addFault("{%s}: %s", match[1], err)
		}
		t.holes = append(t.holes, e)
	}
	return t
}

// errNoPath says that an expression in a path has no output, or an output that cannot be part of a
// path.
var errNoPath = errors.New("an expression in the path has no text")

// render returns the path for an input. It escapes each output: as segments of the path, or after a
// question mark as a part of the query.
func (t *template) render(input any, s scope) (string, error) {
	path := t.texts[0]
	for i, e := range t.holes {
		outputs, err := e.run(input, s)
		if err != nil {
			return "", err
		}
		if len(outputs) != 1 || textOf(outputs[0]) == "" {
			return "", errNoPath
		}
		text := string(textOf(outputs[0]))
		if strings.Contains(path, "?") {
			path += url.QueryEscape(text)
		} else {
			parts := strings.Split(text, "/")
			for j, part := range parts {
				if part == "" || part == "." || part == ".." {
					return "", errNoPath
				}
				parts[j] = url.PathEscape(part)
			}
			path += strings.Join(parts, "/")
		}
		path += t.texts[i+1]
	}
	if before, _, _ := strings.Cut(path, "?"); slices.Contains(strings.Split(before, "/"), "..") {
		return "", errNoPath
	}
	return path, nil
}
