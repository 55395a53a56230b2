package app

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// envPrefix begins the variables that hold settings.
const envPrefix = "MEDIAGATE_"

// otherVariables begin like settings and are none.
var otherVariables = []string{"CONFIG", "FAILPOINT", "FAILPOINT_DIR", "URL", "KEY"}

// setting is one leaf of Config.
type setting struct {
	path   string // temporal.address
	index  []int  // of the field
	kind   reflect.Type
	help   string
	secret string // as the field's tag says
}

func (s setting) env() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(s.path, ".", "_"))
}

func (s setting) flag() string {
	return strings.NewReplacer(".", "-", "_", "-").Replace(s.path)
}

// settings lists the leaves of Config in their order.
func settings() []setting {
	var list []setting
	var walk func(t reflect.Type, prefix string, index []int)
	walk = func(t reflect.Type, prefix string, index []int) {
		for f := range t.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			at := slices.Concat(index, f.Index)
			if f.Type.Kind() == reflect.Struct && f.Type != proxiesType {
				walk(f.Type, prefix+name+".", at)
				continue
			}
			list = append(list, setting{path: prefix + name, index: at, kind: f.Type, help: f.Tag.Get("help"), secret: f.Tag.Get("secret")})
		}
	}
	walk(reflect.TypeFor[Config](), "", nil)
	return list
}

// Sources are where settings come from, the later over the earlier.
type Sources struct {
	Base Config   // Defaults, or those of the standalone program
	File string   // YAML; empty: none; -config wins
	Env  []string // os.Environ
	Args []string // -temporal-address=…
	Dir  string   // where relative paths in settings begin; empty: the working directory
	// Embedded is set by a program that brings a database of its own: it needs
	// no database_url.
	Embedded bool
	Role     Role
}

// UsageError is a command line that cannot be understood.
type UsageError struct{ text string }

// Error says what is wrong with the command line.
func (e *UsageError) Error() string { return e.text }

// WrongUse is a UsageError with that text.
func WrongUse(text string) *UsageError { return &UsageError{text} }

// Unexpected is the UsageError of an argument too many.
func Unexpected(arg string) *UsageError {
	return &UsageError{fmt.Sprintf("unexpected argument %q", arg)}
}

// Load reads and judges the settings. The error joins all that is wrong with
// any of them, each with its path; the Config then holds what was understood.
// A command line that cannot be understood is a *UsageError, one that asks
// for help flag.ErrHelp; nothing is read then.
func Load(src Sources) (Config, error) {
	file, flags, err := parseFlags(src)
	if err != nil {
		return src.Base, err
	}
	c := src.Base
	l := loader{
		decoder: decoder{broken: map[string]bool{}}, config: &c, given: map[string]bool{},
	}
	l.layer(func() { l.file(file) })
	l.layer(func() { l.variables(src.Env) })
	l.layer(func() { l.texts(flags) })
	c.Channels = slices.Clone(c.Channels) // those of src.Base stay
	for i := range c.Channels {
		c.Channels[i] = channelDefaults(c.Channels[i])
	}
	l.origin = ""
	paths := []*string{
		&c.AdminKeyFile, &c.EncryptionKeysFile, &c.CatalogDir, &c.Temporal.TLS.CA, &c.Temporal.TLS.Cert, &c.Temporal.TLS.Key,
	}
	c.Moderation.Files = slices.Clone(c.Moderation.Files) // those of src.Base stay
	for i := range c.Moderation.Files {
		paths = append(paths, &c.Moderation.Files[i])
	}
	for _, path := range paths {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(src.Dir, *path)
		}
	}
	if src.Role != RoleReplay {
		l.keyFiles()
	}
	l.distribute()
	for _, p := range c.problems(src.Embedded, src.Role) {
		if l.known(p.needs) {
			l.problems = append(l.problems, p)
		}
	}
	return c, errors.Join(l.problems...)
}

// loader reads the layers one after the other.
type loader struct {
	decoder
	config *Config
	given  map[string]bool // paths that any layer gives a value
	blind  bool            // the file is not readable: what it says is unknown
}

// layer reads one layer. What it says about a key, as a text or as a file,
// stands in place of what lower layers say in either way.
func (l *loader) layer(read func()) {
	c := l.config
	admin, adminFile, keys, keysFile := c.AdminKey, c.AdminKeyFile, c.EncryptionKeys, c.EncryptionKeysFile
	c.AdminKey, c.AdminKeyFile, c.EncryptionKeys, c.EncryptionKeysFile = "", "", nil, ""
	l.said = map[string]bool{}
	read()
	if l.chosen("admin_key", c.AdminKey != "", &c.AdminKeyFile) {
		keep(l.said, "admin_key", &c.AdminKey, admin)
		keep(l.said, "admin_key_file", &c.AdminKeyFile, adminFile)
	}
	if l.chosen("encryption_keys", len(c.EncryptionKeys) > 0, &c.EncryptionKeysFile) {
		keep(l.said, "encryption_keys", &c.EncryptionKeys, keys)
		keep(l.said, "encryption_keys_file", &c.EncryptionKeysFile, keysFile)
	}
	for path := range l.said {
		l.given[path] = true
	}
}

// chosen judges what a layer says of a setting that may also be in a file, and
// reports whether lower layers count.
func (l *loader) chosen(path string, text bool, file *string) (lower bool) {
	if text && *file != "" {
		l.fail(path+"_file", "excludes "+path+": set one of them")
		*file = ""
	}
	return !text && *file == ""
}

// keep brings back what lower layers say where this one says nothing.
func keep[T any](said map[string]bool, path string, now *T, before T) {
	if !said[path] {
		*now = before
	}
}

// file reads the settings file.
func (l *loader) file(name string) {
	if name == "" {
		return
	}
	text, err := os.ReadFile(name)
	if err != nil {
		l.problems, l.blind = append(l.problems, fmt.Errorf("config: %w", err)), true
		return
	}
	n, err := parseYAML(text)
	if _, ok := n.(yaml.MapSlice); err == nil && n != nil && !ok {
		err = errors.New(mustBeMapping)
	}
	if err != nil {
		l.problems, l.blind = append(l.problems, fmt.Errorf("config: %s: %w", name, err)), true
		return
	}
	l.fields("", n, reflect.ValueOf(l.config).Elem())
}

// variables reads the settings among the variables; an unknown one is a
// problem.
func (l *loader) variables(environ []string) {
	byName := map[string]setting{}
	for _, s := range settings() {
		byName[s.env()] = s
	}
	var texts []settingText
	for _, pair := range environ {
		name, text, _ := strings.Cut(pair, "=")
		short, ok := strings.CutPrefix(name, envPrefix)
		if !ok || slices.Contains(otherVariables, short) || strings.HasPrefix(short, "TEST_") {
			continue
		}
		s, ok := byName[name]
		if !ok {
			l.problems = append(l.problems, fmt.Errorf("%s: no such setting", name))
			continue
		}
		texts = append(texts, settingText{s, name, text})
	}
	l.texts(texts)
}

// settingText is a setting as a variable or flag gives it.
type settingText struct {
	setting
	origin string
	text   string
}

func (l *loader) texts(list []settingText) {
	for _, s := range list {
		l.origin = s.origin
		n, err := s.parse(s.text)
		switch {
		case err != nil:
			l.fail(s.path, "is not readable as YAML: "+err.Error())
		case n != nil || s.kind.Kind() == reflect.Pointer:
			l.leaf(s.path, n, reflect.ValueOf(l.config).Elem().FieldByIndex(s.index))
		}
	}
}

// parse reads the text of a variable or flag: as it is for texts and
// durations and sizes, split at commas or as YAML for lists, as YAML for the rest.
func (s setting) parse(text string) (any, error) {
	if s.kind.Kind() == reflect.String || s.kind == reflect.TypeFor[time.Duration]() || s.kind == reflect.TypeFor[ByteSize]() {
		return text, nil
	}
	if s.kind.Kind() == reflect.Pointer && text != "null" {
		s.kind = s.kind.Elem()
		return s.parse(text)
	}
	listed := s.kind == reflect.TypeFor[[]string]() || s.kind == proxiesType && strings.ContainsAny(text, "/,")
	if listed && !strings.HasPrefix(strings.TrimSpace(text), "[") {
		list := []any{}
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item != "" {
				list = append(list, item)
			}
		}
		return list, nil
	}
	return parseYAML([]byte(text))
}

// keyFiles reads the keys that are in files.
func (l *loader) keyFiles() {
	c := l.config
	if text, ok := l.keyFile("admin_key", c.AdminKey != "", c.AdminKeyFile); ok {
		c.AdminKey = strings.TrimSpace(text)
	}
	if text, ok := l.keyFile("encryption_keys", len(c.EncryptionKeys) > 0, c.EncryptionKeysFile); ok {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				c.EncryptionKeys = append(c.EncryptionKeys, line)
			}
		}
	}
}

// keyFile reads the file of a setting that is not given as a text.
func (l *loader) keyFile(path string, given bool, name string) (text string, ok bool) {
	if given || name == "" {
		return "", false
	}
	text, err := readKeyFile(name)
	if err != nil {
		l.fail(path+"_file", err.Error())
		l.broken[path] = true
	}
	return text, err == nil
}

// known reports whether the settings at the paths are what was meant to be in
// force: all were understood and, without the file, come from elsewhere.
func (l *loader) known(paths []string) bool {
	related := func(set map[string]bool, path string) bool {
		for other := range set {
			if within(other, path) || within(path, other) {
				return true
			}
		}
		return false
	}
	for _, path := range paths {
		if related(l.broken, path) || (l.blind && !related(l.given, path)) {
			return false
		}
	}
	return true
}

// parseFlags takes -config and the settings' flags from the arguments.
func parseFlags(src Sources) (file string, values []settingText, err error) {
	flags := flag.NewFlagSet("mediagate", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	file = src.File
	flags.StringVar(&file, "config", file, "settings file")
	texts := map[string]*string{}
	for _, s := range settings() {
		texts[s.flag()] = flags.String(s.flag(), "", s.help)
	}
	switch err := flags.Parse(src.Args); {
	case errors.Is(err, flag.ErrHelp):
		return "", nil, err
	case err != nil:
		return "", nil, &UsageError{err.Error()}
	case flags.NArg() > 0:
		return "", nil, Unexpected(flags.Arg(0))
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for _, s := range settings() {
		if given[s.flag()] {
			values = append(values, settingText{s, "-" + s.flag(), *texts[s.flag()]})
		}
	}
	return file, values, nil
}

// Usage lists the flags of all settings.
func Usage() string {
	var b strings.Builder
	b.WriteString("  -config FILE\n    \tsettings file (YAML)\n")
	for _, s := range settings() {
		fmt.Fprintf(&b, "  -%s (%s)\n    \t%s\n", s.flag(), s.env(), s.help)
	}
	return b.String()
}
