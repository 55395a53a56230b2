package catalog

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/mediagate/mediagate"
)

// Model is a model under one of its names. It is immutable.
type Model struct {
	ID          string // for an alias, the alias
	Canonical   string // the id in the file
	Aliases     []string
	Type        mediagate.Type
	Category    string // as in the model list
	Tags        []string
	Description string
	Created     time.Time // a day
	Ends        time.Time // the last day on which the vendor serves it; zero: no end is known
	Replacement string    // another model to use instead; empty: none
	Added       bool      // its file, or a change of it, is in catalog_dir
	Uncataloged bool      // no file describes the model

	operations []*Operation
}

// Operations lists the model's operations in the order of the file.
func (m *Model) Operations() []*Operation { return slices.Clone(m.operations) }

// Operation returns the model's operation at the endpoint.
func (m *Model) Operation(endpoint string) (*Operation, bool) {
	i := slices.IndexFunc(m.operations, func(o *Operation) bool { return o.Endpoint == endpoint })
	if i < 0 {
		return nil, false
	}
	return m.operations[i], true
}

// compiler makes models from files.
type compiler struct {
	endpoints []Endpoint
	shared    yaml.MapSlice // definitions
	check     MediaURLCheck
	// taskFileOf parses the address of a task's file. It may be nil.
	taskFileOf func(url string) (taskID string, n int, ok bool)
}

// checkText checks a URL within a text, which the vendor fetches.
func (c compiler) checkText(url string) error {
	if c.taskFileOf != nil {
		if _, _, ok := c.taskFileOf(url); ok {
			return mediagate.Errorf(mediagate.KindInvalid, "a file of a task is taken only where a field has a media URL")
		}
	}
	return c.check(url)
}

// model makes a model from a file, under its own id or an alias, and lists all problems of the
// file.
func (c compiler) model(f namedFile, id string) (*Model, []string) {
	facts, known := f.Type.Facts()
	m := &Model{
		ID: id, Canonical: f.ID, Aliases: f.Aliases, Type: f.Type, Category: facts.Category, Tags: f.Tags,
		Description: f.Description, Added: f.added,
	}
	var problems []string
	if strings.TrimSpace(id) != id || id == "" {
		problems = append(problems, "an id or alias is empty or has blanks around it")
	}
	if !known {
		var words []string
		for _, row := range mediagate.Types() {
			words = append(words, string(row.Type))
		}
		problems = append(problems, "type must be "+list(words, "or"))
	}
	var err error
	if m.Created, err = dayOf(f.Created); err != nil {
		problems = append(problems, "created "+err.Error())
	}
	m.Replacement = f.Replacement.text
	switch {
	case f.Ends.text != "":
		if m.Ends, err = dayOf(f.Ends.text); err != nil {
			problems = append(problems, f.Ends.place+"ends "+err.Error())
		}
	case m.Replacement != "":
		problems = append(problems, f.Replacement.place+"replacement stands only beside ends")
	}
	for _, file := range f.Operations {
		if !enabled(file.Enabled) {
			continue
		}
		o, more := c.operation(m, file)
		o.file = f.name
		problems = append(problems, prefixed(o.key()+": ", more)...)
		m.operations = append(m.operations, o)
	}
	if len(m.operations) == 0 {
		problems = append(problems, "operations: there are none")
	}
	return m, problems
}

func prefixed(prefix string, texts []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = prefix + text
	}
	return out
}

// key names the operation's place in its file.
func (o *Operation) key() string { return fmt.Sprintf("operations[%s]", o.Endpoint) }
