package catalog

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/mediagate/mediagate/internal/outbound"
)

//go:embed models/*.yaml
var builtIn embed.FS

// MediaURLCheck checks the syntax of a media URL. If its error is a *mediagate.Error, the client
// sees the message after the field's name.
type MediaURLCheck func(raw string) error

// Option configures Load.
type Option func(*loader)

// WithMediaURLCheck replaces the check of media URLs. The default allows no exceptions to the
// address rules.
func WithMediaURLCheck(check MediaURLCheck) Option {
	return func(l *loader) { l.check = check }
}

// WithTaskFileOf refuses requests whose texts contain the URL of a task's file, since the vendor
// would fetch that URL without a key and fail. of parses the address of such a file.
func WithTaskFileOf(of func(url string) (taskID string, n int, ok bool)) Option {
	return func(l *loader) { l.taskFileOf = of }
}

// Catalog holds the models that are switched on. It is immutable.
type Catalog struct {
	endpoints    []Endpoint
	models       map[string]*Model // by id and by alias
	folded       map[string]*Model // models that are found in any letter case, by the name in lower case
	passthroughs map[string]*Model // models that no file describes
}

type loader struct {
	compiler
	passthrough []Passthrough
	problems    []error
}

// Load reads the built-in models and, unless dir is empty, merges the *.yaml and *.yml files of dir
// into them. A file with the id of a built-in model replaces the keys that it has. A file with a
// new id adds a model. A file with `enabled: false` switches the model off. Operations are merged
// in the same way, by endpoint.
//
// Its error joins all problems, one a line. The catalog that comes with an error holds what could
// be read. It is meant for further checks and must not be served.
func Load(dir string, options ...Option) (*Catalog, error) {
	l := &loader{compiler: compiler{endpoints: endpoints, check: outbound.Rules{}.CheckMediaURL}}
	for _, option := range options {
		option(l)
	}
	var err error
	if l.shared, err = definitions(); err != nil {
		return nil, err
	}
	embedded, err := fs.Sub(builtIn, "models")
	if err != nil {
		return nil, err
	}
	files := l.read(embedded)
	if dir != "" {
		for id, over := range l.read(os.DirFS(dir)) {
			over.added = true
			base, known := files[id]
			if !known {
				files[id] = over
				continue
			}
			files[id] = namedFile{modelFile: overlayModel(base.modelFile, over.modelFile), name: over.name, added: true}
		}
	}
	c := l.compile(files)
	if len(l.problems) > 0 {
		// The problems are sorted so that two starts report the same.
		slices.SortStableFunc(l.problems, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
		return c, errors.Join(l.problems...)
	}
	return c, nil
}

// namedFile is a model file with its name, for messages, and its origin.
type namedFile struct {
	modelFile
	name  string
	added bool // from catalog_dir
}

func (l *loader) report(name, format string, args ...any) {
	l.problems = append(l.problems, fmt.Errorf("catalog: %s: %w", name, fmt.Errorf(format, args...)))
}

func (l *loader) read(dir fs.FS) map[string]namedFile {
	files := map[string]namedFile{}
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		l.report("catalog_dir", "%w", err)
		return files
	}
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || !IsModelFile(name) {
			continue
		}
		b, err := ReadModelFile(dir, name)
		if err != nil {
			l.report(name, "%w", err)
			continue
		}
		f, err := decodeModel(b)
		if err != nil {
			l.report(name, "%w", err)
			continue
		}
		if first, twice := files[f.ID]; twice {
			l.report(name, "%s is already defined by %s", f.ID, first.name)
			continue
		}
		files[f.ID] = namedFile{modelFile: f, name: name}
	}
	return files
}

// maxFile is far above the largest model. Parsing YAML takes more than a hundred times its size
// in memory, in a process that serves clients meanwhile.
const maxFile = 1 << 20

// ReadModelFile reads a file of a folder of models. It refuses large files, and anything but a
// regular file: a pipe might block it.
func ReadModelFile(dir fs.FS, name string) ([]byte, error) {
	switch info, err := fs.Stat(dir, name); {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("is not a regular file")
	}
	file, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(text) > maxFile {
		return nil, fmt.Errorf("is larger than %d bytes", maxFile)
	}
	return text, err
}

// IsModelFile reports whether Load reads files of this name.
func IsModelFile(name string) bool { return slices.Contains([]string{".yaml", ".yml"}, path.Ext(name)) }

func (l *loader) compile(files map[string]namedFile) *Catalog {
	c := &Catalog{
		endpoints: l.endpoints, models: map[string]*Model{}, folded: map[string]*Model{}, passthroughs: map[string]*Model{},
	}
	for _, id := range slices.Sorted(maps.Keys(files)) {
		f := files[id]
		if !enabled(f.Enabled) {
			continue
		}
		for _, name := range append([]string{id}, f.Aliases...) {
			m, problems := l.model(f, name)
			for _, problem := range problems {
				l.report(f.name, "%s", problem)
			}
			if other, taken := c.models[name]; taken {
				l.report(f.name, "the id %s is taken by %s", name, other.Canonical)
				continue
			}
			c.models[name] = m
			l.fold(c, f.name, m)
			if len(problems) > 0 {
				break // an alias would only repeat the problems
			}
		}
	}
	l.checkSourceModels(files)
	l.checkReplacements(c, files)
	l.compilePassthroughs(c)
	return c
}

// checkSourceModels reports the models that a source names but no file describes. A model that is
// switched off is a valid source, since its results may still exist.
func (l *loader) checkSourceModels(files map[string]namedFile) {
	for _, f := range files {
		for _, o := range f.Operations {
			if o.Source == nil || !enabled(f.Enabled) || !enabled(o.Enabled) {
				continue
			}
			for _, id := range o.Source.Of {
				if _, known := files[id]; !known {
					l.report(f.name, "operations[%s]: source: of: there is no model %s", o.Endpoint, id)
				}
			}
		}
	}
}

// checkReplacements reports replacements that are not served, or are the model itself.
func (l *loader) checkReplacements(c *Catalog, files map[string]namedFile) {
	for _, f := range files {
		if !enabled(f.Enabled) || f.Replacement.text == "" {
			continue
		}
		switch other, known := c.models[f.Replacement.text]; {
		case !known:
			l.report(f.name, "%sreplacement: there is no model %s", f.Replacement.place, f.Replacement.text)
		case other.Canonical == f.ID:
			l.report(f.name, "%sreplacement must be another model", f.Replacement.place)
		}
	}
}

// fold makes a model findable in any letter case if one of its endpoints demands that.
func (l *loader) fold(c *Catalog, file string, m *Model) {
	anyCase := slices.ContainsFunc(m.operations, func(o *Operation) bool {
		row, _ := endpointAt(l.endpoints, o.Endpoint)
		return row.AnyCase
	})
	if !anyCase {
		return
	}
	name := strings.ToLower(m.ID)
	if other, taken := c.folded[name]; taken {
		l.report(
			file, "the id %s differs from %s in letter case only, which does not count at their endpoints", m.ID, other.ID,
		)
		return
	}
	c.folded[name] = m
}

// Model finds a model by its exact id or alias. An alias has a Model of its own, with the alias
// as ID.
func (c *Catalog) Model(id string) (*Model, bool) {
	m, ok := c.models[id]
	return m, ok
}

// Models lists the models in files, including aliases, sorted by id.
func (c *Catalog) Models() []*Model {
	return slices.SortedFunc(maps.Values(c.models), func(a, b *Model) int { return cmp.Compare(a.ID, b.ID) })
}
