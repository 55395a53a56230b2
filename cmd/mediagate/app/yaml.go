package app

import (
	"errors"
	"slices"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// parseYAML parses one document to nil, bool, string, []any or map[string]any. Numbers stay
// texts: the library would read 0123456 as octal and 1_000 as a thousand, which would ruin keys
// and amounts. Errors name line and column, never values.
func parseYAML(text []byte) (any, error) {
	tokens := lexer.Tokenize(string(text))
	for _, t := range tokens {
		switch t.Type {
		case token.IntegerType, token.BinaryIntegerType, token.OctetIntegerType, token.HexIntegerType, token.FloatType,
			token.InfinityType, token.NanType:
			t.Type = token.StringType
		default:
		}
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, errors.New(yaml.FormatError(err, false, false))
	}
	var value any
	documents := 0
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if documents++; documents > 1 {
			return nil, errors.New("holds several documents, must be one")
		}
		ast.Walk(mergedFirst{}, doc.Body)
		if err := yaml.NodeToValue(doc.Body, &value); err != nil {
			return nil, errors.New(yaml.FormatError(err, false, false))
		}
	}
	return value, nil
}

// mergedFirst puts the entries that `<<` merges into a mapping before its own entries, which take
// precedence.
type mergedFirst struct{}

// Visit reorders one mapping.
func (v mergedFirst) Visit(n ast.Node) ast.Visitor {
	if m, ok := n.(*ast.MappingNode); ok {
		own := func(e *ast.MappingValueNode) bool { return !e.Key.IsMergeKey() }
		merged := slices.DeleteFunc(slices.Clone(m.Values), own)
		m.Values = append(merged, slices.DeleteFunc(m.Values, func(e *ast.MappingValueNode) bool { return !own(e) })...)
	}
	return v
}
