package app

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"
)

// envPrefix begins the variables that hold settings.
const envPrefix = "MEDIAGATE_"

// otherVariables begin like the variables of settings but hold none. Those of clients (URL,
// API_KEY) and of docker-compose.yml (API_CHANNEL_CREDENTIALS) may be exported in the shell that
// starts the program.
var otherVariables = []string{"CONFIG", "FAILPOINT", "FAILPOINT_DIR", "URL", "API_KEY", "API_CHANNEL_CREDENTIALS"}

// setting is one leaf of Config.
type setting struct {
	path   string // temporal.address
	index  []int  // of the field
	kind   reflect.Type
	help   string
	secret string // the field's secret tag
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
			if !f.IsExported() {
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			at := slices.Concat(index, f.Index)
			if f.Type.Kind() == reflect.Struct && f.Type != proxiesType {
				walk(f.Type, prefix+name+".", at)
				continue
			}
			list = append(
				list, setting{path: prefix + name, index: at, kind: f.Type, help: f.Tag.Get("help"), secret: f.Tag.Get("secret")},
			)
		}
	}
	walk(reflect.TypeFor[Config](), "", nil)
	return list
}

// Sources say where settings come from. Later ones override earlier ones.
type Sources struct {
	Base Config   // Defaults, or the standalone program's settings
	File string   // a YAML file, or empty; -config overrides it
	Env  []string // os.Environ
	Args []string // -temporal-address=…
	Dir  string   // the folder of relative paths in settings; empty means the working directory
	// Embedded is set by a program with its own database, which needs no database_url.
	Embedded bool
	Role     Role
}

// UsageError is a command line that cannot be understood.
type UsageError struct{ text string }

// Error says what is wrong with the command line.
func (e *UsageError) Error() string { return e.text }

// WrongUse returns a UsageError with this text.
func WrongUse(text string) *UsageError { return &UsageError{text} }

// Unexpected returns the UsageError for one argument too many.
func Unexpected(arg string) *UsageError {
	return &UsageError{fmt.Sprintf("unexpected argument %q", arg)}
}

// Load reads and validates the settings. Its error joins all problems, each with the setting's
// path, and the Config then holds what was understood. For a command line that cannot be understood
// the error is a *UsageError, and for one that asks for help flag.ErrHelp. In both cases Load reads
// nothing else. If the file cannot be read, Load validates nothing.
func Load(src Sources) (Config, error) {
	file, flags, err := parseFlags(src)
	if err != nil {
		return src.Base, err
	}
	r := reader{tree: map[string]any{}, origins: map[string]string{}, broken: map[string]bool{}}
	readable := r.file(file)
	r.texts(r.variables(src.Env))
	r.texts(flags)
	dropNulls(r.tree)
	c := src.Base
	for _, name := range keysInFiles {
		text, inFile := r.tree[name], r.tree[name+"_file"]
		if isSet(text) && isSet(inFile) {
			r.fail(name+"_file", "excludes "+name+": set one of them")
			delete(r.tree, name+"_file")
		}
		if isSet(text) || isSet(inFile) {
			c.dropKey(name)
		}
	}
	r.decode(&c)
	c.Channels = slices.Clone(c.Channels) // the list in src.Base stays unchanged
	for i := range c.Channels {
		c.Channels[i] = channelDefaults(c.Channels[i])
	}
	paths := []*string{
		&c.AdminKeyFile, &c.OIDC.ClientSecretFile, &c.EncryptionKeysFile, &c.CatalogDir, &c.VendorDir, &c.Temporal.TLS.CA,
		&c.Temporal.TLS.Cert, &c.Temporal.TLS.Key,
	}
	c.Moderation.Files = slices.Clone(c.Moderation.Files) // the list in src.Base stays unchanged
	for i := range c.Moderation.Files {
		paths = append(paths, &c.Moderation.Files[i])
	}
	c.Operators = slices.Clone(c.Operators) // the list in src.Base stays unchanged
	for i := range c.Operators {
		paths = append(paths, &c.Operators[i].KeyFile)
	}
	for _, path := range paths {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(src.Dir, *path)
		}
	}
	if src.Role != RoleReplay {
		r.keyFiles(&c)
	}
	r.distribute(&c)
	if readable && src.Role != RoleReplay {
		r.vendors(&c)
	}
	if readable {
		for _, p := range c.problems(src.Embedded, src.Role) {
			if r.known(p.path) {
				r.problems = append(r.problems, p)
			}
		}
	}
	return c, errors.Join(r.problems...)
}

// reader merges the settings of the file, the variables and the flags. It remembers which values
// it could not understand, so that they are reported only once.
type reader struct {
	tree     map[string]any    // the written settings, nested by the names in their paths
	origins  map[string]string // the variable or flag that a setting comes from; none for the file
	problems []error           // in order of reading
	broken   map[string]bool   // paths of values that were not understood
}

// report adds a problem.
func (r *reader) report(path, problem string) {
	for from, origin := range r.origins {
		if within(from, path) {
			problem += " (" + origin + ")"
		}
	}
	r.problems = append(r.problems, fmt.Errorf("%s: %s", path, problem))
}

// fail adds a problem of a value, which is unknown from then on.
func (r *reader) fail(path, problem string) {
	r.report(path, problem)
	r.broken[path] = true
}

// known reports whether the setting at the path was understood.
func (r *reader) known(path string) bool {
	for other := range r.broken {
		if within(other, path) || within(path, other) {
			return false
		}
	}
	return true
}

// keysInFiles are the settings that may be in a file of their own instead, NAME_file. If a layer
// gives one in either form, that replaces both forms of lower layers.
var keysInFiles = []string{"admin_key", "encryption_keys"}

// isSet reports whether a value is not empty.
func isSet(v any) bool {
	list, ok := v.([]any)
	return v != nil && v != "" && (!ok || len(list) > 0)
}

// dropKey removes a key that lower layers have given in either form.
func (c *Config) dropKey(name string) {
	if name == keysInFiles[0] {
		c.AdminKey, c.AdminKeyFile = "", ""
	} else {
		c.EncryptionKeys, c.EncryptionKeysFile = nil, ""
	}
}

// file reads the settings file, and reports whether that succeeded.
func (r *reader) file(name string) bool {
	if name == "" {
		return true
	}
	text, err := readSettingsFile(name)
	if err != nil {
		r.problems = append(r.problems, fmt.Errorf("config: %w", err))
		return false
	}
	n, err := parseYAML(text)
	tree, ok := n.(map[string]any)
	if err == nil && n != nil && !ok {
		err = errors.New(mustBeMapping)
	}
	if err != nil {
		r.problems = append(r.problems, fmt.Errorf("config: %s: %w", name, err))
		return false
	}
	if tree != nil {
		r.tree = tree
	}
	return true
}

// dropNulls removes the names without a value. In account_defaults null is a value.
func dropNulls(tree any) {
	switch tree := tree.(type) {
	case map[string]any:
		for name, value := range tree {
			if value == nil {
				delete(tree, name)
			} else if name != "account_defaults" {
				dropNulls(value)
			}
		}
	case []any:
		for _, item := range tree {
			dropNulls(item)
		}
	}
}

// variables returns the settings among the variables. An unknown one is a problem.
func (r *reader) variables(environ []string) []settingText {
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
			r.problems = append(r.problems, fmt.Errorf("%s: no such setting", name))
			continue
		}
		texts = append(texts, settingText{s, name, text})
	}
	return texts
}

// settingText is a setting in a variable or flag.
type settingText struct {
	setting
	origin string
	text   string
}

// texts merges a layer of variables or flags.
func (r *reader) texts(list []settingText) {
	for _, s := range list {
		if name := strings.TrimSuffix(s.path, "_file"); s.text != "" && slices.Contains(keysInFiles, name) {
			delete(r.tree, name)
			delete(r.tree, name+"_file")
		}
	}
	for _, s := range list {
		r.origins[s.path] = s.origin
		n, err := s.parse(s.text)
		switch {
		case err != nil:
			r.fail(s.path, "is not readable as YAML: "+err.Error())
		case n != nil || s.kind.Kind() == reflect.Pointer:
			put(r.tree, strings.Split(s.path, "."), n)
		}
	}
}

// put sets a value in a tree.
func put(tree map[string]any, names []string, value any) {
	if len(names) == 1 {
		tree[names[0]] = value
		return
	}
	if tree[names[0]] == nil {
		tree[names[0]] = map[string]any{}
	}
	if inner, ok := tree[names[0]].(map[string]any); ok { // anything else is a problem of its own
		put(inner, names[1:], value)
	}
}

// parse parses the text of a variable or flag: texts, durations and sizes as they are, lists
// split at commas or as YAML, the rest as YAML.
func (s setting) parse(text string) (any, error) {
	if s.kind.Kind() == reflect.String || s.kind == reflect.TypeFor[time.Duration]() ||
		s.kind == reflect.TypeFor[ByteSize]() {
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

// keyFiles reads the files of keys that the settings name.
func (r *reader) keyFiles(c *Config) {
	if text, ok := r.keyFile("admin_key", c.AdminKey != "", c.AdminKeyFile); ok {
		c.AdminKey = strings.TrimSpace(text)
	}
	if text, ok := r.keyFile("encryption_keys", len(c.EncryptionKeys) > 0, c.EncryptionKeysFile); ok {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				c.EncryptionKeys = append(c.EncryptionKeys, line)
			}
		}
	}
}

// keyFile reads the file of a setting that is not given directly.
func (r *reader) keyFile(path string, given bool, name string) (text string, ok bool) {
	if given || name == "" {
		return "", false
	}
	text, err := readKeyFile(name)
	if err != nil {
		r.fail(path+"_file", err.Error())
		r.broken[path] = true
	}
	return text, err == nil
}

// parseFlags takes -config and the flags of settings from the arguments.
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
