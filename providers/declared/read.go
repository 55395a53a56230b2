package declared

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// maxFile bounds a file in bytes. maxDepth bounds its nesting, and the number of list and key marks
// in one line.
const (
	maxFile  = 1 << 20
	maxDepth = 64
)

// fault is one fault of a file.
type fault struct {
	file         string
	line, column int
	text         string
}

// Error returns FILE:LINE:COLUMN and the fault.
func (f fault) Error() string { return fmt.Sprintf("%s:%d:%d: %s", f.file, f.line, f.column, f.text) }

// reading is a file that is being read, with the faults found so far.
type reading struct {
	file   string
	faults []fault
}

func (r *reading) addFault(line, column int, format string, args ...any) {
	r.faults = append(r.faults, fault{r.file, line, column, fmt.Sprintf(format, args...)})
}

// err joins the faults in the order of the file.
func (r *reading) err() error {
	slices.SortStableFunc(r.faults, func(a, b fault) int { return cmp.Or(a.line-b.line, a.column-b.column) })
	errs := make([]error, len(r.faults))
	for i, f := range r.faults {
		errs[i] = f
	}
	return errors.Join(errs...)
}

// document parses a file. It returns a value that is not set if the file is not valid.
func (r *reading) document(text []byte) value {
	if len(text) > maxFile {
		r.addFault(1, 1, "the file is longer than %d bytes", maxFile)
		return value{r: r}
	}
	if !utf8.Valid(text) {
		r.addFault(1, 1, "the file is not in UTF-8")
		return value{r: r}
	}
	tokens := lexer.Tokenize(string(text))
	if !r.checkTokens(tokens) {
		return value{r: r}
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	var syntax yaml.Error
	switch {
	case errors.As(err, &syntax):
		at := syntax.GetToken().Position
		text := syntax.GetMessage()
		if strings.Contains(text, "mapping value is not allowed") {
			text += "; put an expression with a colon and a space in single quotes"
		}
		r.addFault(at.Line, at.Column, "%s", text)
	case err != nil:
		r.addFault(1, 1, "%s", err)
	case len(file.Docs) != 1 || file.Docs[0].Body == nil:
		r.addFault(1, 1, "the file must hold one YAML document")
	default:
		return value{r: r, node: file.Docs[0].Body}
	}
	return value{r: r}
}

// checkTokens reports aliases, anchors, tags, and nesting that is too deep.
func (r *reading) checkTokens(tokens token.Tokens) bool {
	found, depth, line, marks := len(r.faults), 0, 0, 0
	for _, t := range tokens {
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType, token.TagType:
			r.addFault(t.Position.Line, t.Position.Column, "aliases, anchors and tags are not possible here")
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType:
			if marks++; t.Position.Line != line {
				line, marks = t.Position.Line, 0
			}
		default:
		}
		if depth > maxDepth || marks > maxDepth {
			r.addFault(t.Position.Line, t.Position.Column, "nested too deep")
			break
		}
	}
	return len(r.faults) == found
}

// value is a part of a file. If the file lacks the part, node is nil.
type value struct {
	r    *reading
	node ast.Node
	at   *token.Position // of its key
	path string
}

func (v value) isSet() bool { return v.node != nil && v.node.Type() != ast.NullType }

// position returns the position of the value. If the value is missing or is no scalar in one line, it
// returns the position of the key, if there is one.
func (v value) position() (line, column int) {
	switch {
	case v.node == nil && v.at == nil:
		return 1, 1
	case v.node == nil, v.at != nil && !isScalar(v.node):
		return v.at.Line, v.at.Column
	}
	at := v.node.GetToken().Position
	if n, ok := v.node.(*ast.MappingNode); ok && len(n.Values) > 0 {
		at = n.Values[0].Key.GetToken().Position
	}
	return at.Line, at.Column
}

func isScalar(n ast.Node) bool {
	_, ok := n.(ast.ScalarNode)
	return ok && n.Type() != ast.LiteralType
}

func (v value) addFault(format string, args ...any) {
	line, column := v.position()
	text := fmt.Sprintf(format, args...)
	if v.path != "" {
		text = v.path + ": " + text
	}
	v.r.addFault(line, column, "%s", text)
}

// entry is a member of a mapping.
type entry struct {
	key string
	value
}

// entries returns the members of a mapping.
func (v value) entries() (list []entry) {
	if !v.isSet() {
		return nil
	}
	var nodes []*ast.MappingValueNode
	switch n := v.node.(type) {
	case *ast.MappingNode:
		nodes = n.Values
	case *ast.MappingValueNode:
		nodes = []*ast.MappingValueNode{n}
	default:
		v.addFault("must be a mapping")
	}
	seen := map[string]bool{}
	for _, n := range nodes {
		key := n.Key.GetToken().Value
		path := strings.TrimPrefix(v.path+"."+key, ".")
		e := entry{key, value{r: v.r, node: n.Value, at: n.Key.GetToken().Position, path: path}}
		if seen[key] {
			v.r.addFault(e.at.Line, e.at.Column, "%s: is given twice", e.path)
		}
		seen[key] = true
		list = append(list, e)
	}
	return list
}

// object returns a mapping with known keys. A ! before a key means that the key is required.
func (v value) object(known ...string) map[string]value {
	members, entries := map[string]value{}, v.entries()
	for i, name := range known {
		known[i] = strings.TrimPrefix(name, "!")
		members[known[i]] = value{r: v.r, at: v.at, path: strings.TrimPrefix(v.path+"."+known[i], ".")}
		if known[i] != name && v.isSet() && !slices.ContainsFunc(entries, func(e entry) bool { return e.key == known[i] }) {
			v.addFault("%s is missing", known[i])
		}
	}
	for _, e := range entries {
		if !slices.Contains(known, e.key) {
			v.r.addFault(e.at.Line, e.at.Column, "%s: is unknown; known: %s", e.path, strings.Join(known, ", "))
			continue
		}
		members[e.key] = e.value
	}
	return members
}

// items returns the items of a list.
func (v value) items() (list []value) {
	if !v.isSet() {
		return nil
	}
	n, ok := v.node.(*ast.SequenceNode)
	if !ok {
		v.addFault("must be a list")
		return nil
	}
	for i, item := range n.Values {
		list = append(list, value{r: v.r, node: item, path: fmt.Sprintf("%s[%d]", v.path, i)})
	}
	return list
}

// text returns a text, or a number as written.
func (v value) text() string {
	if !v.isSet() {
		return ""
	}
	switch n := v.node.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode:
		return n.GetToken().Value
	default:
		v.addFault("must be a text")
		return ""
	}
}

// texts returns a list of texts. A single text counts as a list.
func (v value) texts() (list []string) {
	if _, ok := v.node.(*ast.SequenceNode); !ok && v.isSet() {
		return []string{v.text()}
	}
	for _, item := range v.items() {
		list = append(list, item.text())
	}
	return list
}

// number returns a whole number that is not negative.
func (v value) number() int {
	var n int
	if v.isSet() {
		if err := yaml.NodeToValue(v.node, &n); err != nil || n < 0 {
			v.addFault("must be a whole number")
		}
	}
	return max(n, 0)
}

func (v value) flag() bool {
	if !v.isSet() {
		return false
	}
	n, ok := v.node.(*ast.BoolNode)
	if !ok {
		v.addFault("must be true or false")
		return false
	}
	return n.Value
}

func (v value) duration() time.Duration {
	if !v.isSet() {
		return 0
	}
	d, err := time.ParseDuration(v.text())
	if err != nil || d <= 0 {
		v.addFault("must be a time such as 30s")
	}
	return d
}

// word returns the text, and adds a fault if it is none of the words. It returns "" for a missing
// value.
func (v value) word(words ...string) string {
	text := v.text()
	if v.isSet() && !slices.Contains(words, text) {
		v.addFault("%q is unknown; known: %s", text, strings.Join(words, ", "))
	}
	return text
}

// document returns the value as a JSON document.
func (v value) document() (document any) {
	if !v.isSet() {
		return nil
	}
	var read any
	if err := yaml.NodeToValue(v.node, &read); err != nil {
		v.addFault("cannot be read")
		return nil
	}
	text, err := vendorhttp.Encode(read)
	if err != nil {
		v.addFault("cannot be written as JSON")
		return nil
	}
	document, _ = decode(text)
	return document
}

// expression returns a compiled jq program.
func (v value) expression() *expression {
	if !v.isSet() {
		return nil
	}
	text := v.text()
	e, offset, err := compile(text)
	if err == nil {
		return e
	}
	line, column := v.position()
	if n, ok := v.node.(*ast.LiteralNode); ok {
		before := text[:min(offset, len(text))]
		line = n.Start.Position.Line + 1 + strings.Count(before, "\n")
		column = n.Start.Position.Column
	}
	v.r.addFault(line, column, "%s: %s", v.path, err)
	return nil
}

// decode reads one JSON value. Its numbers stay as written.
func decode(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var document any
	if err := d.Decode(&document); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one document")
	}
	return document, nil
}
