package app

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// node is a value of YAML as it was written. Numbers keep their text: the
// library reads 0123456 as octal, 1_000 as a thousand and what is beyond 64
// bits as a text, none of which a key or an amount survives.
type node struct {
	kind    nodeKind
	text    string  // of a scalar
	items   []node  // of a list
	entries []entry // of a mapping, in their order
}

type entry struct {
	name  string
	value node
}

type nodeKind int

const (
	kindNothing nodeKind = iota // null, or nothing after the colon
	kindText                    // in quotes, or a block
	kindPlain                   // without quotes: a text or a number
	kindBool
	kindList
	kindMapping
)

func textNode(s string) node { return node{kind: kindText, text: s} }

// parseYAML reads one document. Errors name line and column, never values.
func parseYAML(text []byte) (node, error) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return node{}, errors.New(yaml.FormatError(err, false, false))
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	switch len(bodies) {
	case 0:
		return node{}, nil
	case 1:
		r := reader{anchors: map[string]node{}}
		return r.read(bodies[0])
	default:
		return node{}, errors.New("holds several documents, must be one")
	}
}

// reader turns the library's tree into nodes.
type reader struct{ anchors map[string]node }

func (r *reader) read(n ast.Node) (node, error) {
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return node{}, nil
	case *ast.BoolNode:
		return node{kind: kindBool, text: strings.ToLower(n.GetToken().Value)}, nil
	case *ast.StringNode:
		if t := n.GetToken().Type; t == token.SingleQuoteType || t == token.DoubleQuoteType {
			return textNode(n.Value), nil
		}
		return node{kind: kindPlain, text: n.Value}, nil
	case *ast.LiteralNode:
		return textNode(n.Value.Value), nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return node{kind: kindPlain, text: n.GetToken().Value}, nil
	case *ast.AnchorNode:
		value, err := r.read(n.Value)
		if err != nil {
			return node{}, err
		}
		r.anchors[n.Name.GetToken().Value] = value
		return value, nil
	case *ast.AliasNode:
		value, ok := r.anchors[n.Value.GetToken().Value]
		if !ok {
			return node{}, at(n, "an alias of nothing that comes before it")
		}
		return value, nil
	case *ast.TagNode:
		value, err := r.read(n.Value)
		if err == nil && n.Start.Value == "!!str" && value.kind != kindList && value.kind != kindMapping {
			value.kind = kindText
		}
		return value, err
	case *ast.SequenceNode:
		list := node{kind: kindList}
		for _, item := range n.Values {
			value, err := r.read(item)
			if err != nil {
				return node{}, err
			}
			list.items = append(list.items, value)
		}
		return list, nil
	case ast.MapNode: // of one entry or more
		return r.mapping(n)
	default:
		return node{}, at(n, "not understood")
	}
}

// mapping reads a mapping's entries. Those that `<<` brings in stand behind
// its own.
func (r *reader) mapping(n ast.MapNode) (node, error) {
	m := node{kind: kindMapping}
	var merged []entry
	for entries := n.MapRange(); entries.Next(); {
		value, err := r.read(entries.Value())
		if err != nil {
			return node{}, err
		}
		if _, ok := entries.Key().(*ast.MergeKeyNode); ok {
			more := []node{value}
			if value.kind == kindList {
				more = value.items
			}
			for _, one := range more {
				merged = append(merged, one.entries...)
			}
			continue
		}
		var key ast.Node = entries.Key()
		if explicit, ok := key.(*ast.MappingKeyNode); ok {
			key = explicit.Value
		}
		m.entries = append(m.entries, entry{key.GetToken().Value, value})
	}
	for _, e := range merged {
		if !slices.ContainsFunc(m.entries, func(own entry) bool { return own.name == e.name }) {
			m.entries = append(m.entries, e)
		}
	}
	return m, nil
}

func at(n ast.Node, problem string) error {
	where := n.GetToken().Position
	return fmt.Errorf("[%d:%d] %s", where.Line, where.Column, problem)
}
