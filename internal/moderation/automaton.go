package moderation

import (
	"cmp"
	"slices"
)

// automaton finds all of many words in a text in one pass (Aho and Corasick, 1975). Its time
// grows with the text and the number of matches, its memory with the words.
type automaton struct {
	nodes []node
	edges []edge // the edges of a node are adjacent, sorted by character
}

// node stands for a prefix of words.
type node struct {
	edges, end int32 // range of its edges
	fail       int32 // the longest other prefix that its text ends with
	word       int32 // the word that it completes; -1 for none
	shorter    int32 // the next node along fail that completes a word; 0 for none
	depth      int32
}

type edge struct {
	by rune
	to int32
}

// newAutomaton makes an automaton for the words, none of which may be empty. Equal words are
// found as the first of them.
func newAutomaton(words [][]rune) *automaton {
	type step struct {
		from int32
		by   rune
	}
	steps := map[step]int32{}
	a := &automaton{nodes: []node{{word: -1}}}
	for i, word := range words {
		at := int32(0)
		for _, r := range word {
			to, ok := steps[step{at, r}]
			if !ok {
				to = int32(len(a.nodes))
				steps[step{at, r}] = to
				a.nodes = append(a.nodes, node{word: -1, depth: a.nodes[at].depth + 1})
			}
			at = to
		}
		if a.nodes[at].word < 0 {
			a.nodes[at].word = int32(i)
		}
	}
	ordered := make([]step, 0, len(steps))
	for s := range steps {
		ordered = append(ordered, s)
	}
	slices.SortFunc(ordered, func(x, y step) int { return cmp.Or(cmp.Compare(x.from, y.from), cmp.Compare(x.by, y.by)) })
	for i, s := range ordered {
		n := &a.nodes[s.from]
		if n.end == 0 {
			n.edges = int32(i)
		}
		n.end = int32(i + 1)
		a.edges = append(a.edges, edge{s.by, steps[s]})
	}
	a.link()
	return a
}

// link sets fail and shorter, level by level.
func (a *automaton) link() {
	queue := []int32{0}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, e := range a.edges[a.nodes[at].edges:a.nodes[at].end] {
			if at != 0 {
				fail := a.next(a.nodes[at].fail, e.by)
				a.nodes[e.to].fail = fail
				if a.nodes[fail].word >= 0 {
					a.nodes[e.to].shorter = fail
				} else {
					a.nodes[e.to].shorter = a.nodes[fail].shorter
				}
			}
			queue = append(queue, e.to)
		}
	}
}

// next returns the node of the longest prefix that the text ends with after another character.
func (a *automaton) next(at int32, by rune) int32 {
	for {
		n := &a.nodes[at]
		edges := a.edges[n.edges:n.end]
		if i, ok := slices.BinarySearchFunc(edges, by, func(e edge, by rune) int { return cmp.Compare(e.by, by) }); ok {
			return edges[i].to
		}
		if at == 0 {
			return 0
		}
		at = n.fail
	}
}

// found calls take for the words that end at the node, the longest first, until take accepts one.
func (a *automaton) found(at int32, take func(word, length int) bool) bool {
	if a.nodes[at].word < 0 {
		at = a.nodes[at].shorter
	}
	for ; at != 0; at = a.nodes[at].shorter {
		if take(int(a.nodes[at].word), int(a.nodes[at].depth)) {
			return true
		}
	}
	return false
}
