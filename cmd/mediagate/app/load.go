package app

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/goccy/go-yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"
)

// envPrefix begins the variables that hold settings.
const envPrefix = "MEDIAGATE_"

// otherVariables begin like settings and are none.
var otherVariables = []string{"CONFIG", "FAILPOINT", "FAILPOINT_DIR", "URL", "KEY", "DATA", "VERIFY"}

// setting is one leaf of Config.
type setting struct {
	path   string // temporal.address
	kind   reflect.Type
	help   string
	secret string
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
	var walk func(t reflect.Type, prefix string)
	walk = func(t reflect.Type, prefix string) {
		for f := range t.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if f.Type.Kind() == reflect.Struct {
				walk(f.Type, prefix+name+".")
				continue
			}
			list = append(list, setting{path: prefix + name, kind: f.Type, help: f.Tag.Get("help"), secret: f.Tag.Get("secret")})
		}
	}
	walk(reflect.TypeFor[Config](), "")
	return list
}

// Sources are where settings come from, the later over the earlier.
type Sources struct {
	Base Config   // Defaults, or those of the standalone program
	File string   // YAML; empty: none
	Env  []string // os.Environ
	Args []string // -temporal-address=…; the rest is returned
}

// Load reads the settings. The error joins all problems, each with its path.
func Load(src Sources) (c Config, rest []string, err error) {
	k := koanf.New(".")
	var problems []error
	file, rest, values, err := parseFlags(src)
	if err != nil {
		return c, nil, err
	}
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return c, nil, fmt.Errorf("config: %w", err)
		}
		if err := k.Load(rawbytes.Provider(text), yamlParser{}); err != nil {
			return c, nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	env, err := fromEnv(src.Env)
	problems = append(problems, err)
	for _, layer := range []map[string]any{env, values} {
		problems = append(problems, k.Load(confmap.Provider(layer, "."), nil))
	}
	c = src.Base
	if k.Exists("channels") {
		c.Channels = nil // replaced as a whole
	}
	if k.Exists("groups") {
		c.Groups = nil
	}
	problems = append(problems, decode(k.Raw(), &c))
	if err := errors.Join(problems...); err != nil {
		return c, nil, err
	}
	for i := range c.Channels {
		c.Channels[i] = channelDefaults(c.Channels[i])
	}
	if c.AdminKey == "" && c.AdminKeyFile != "" {
		text, err := os.ReadFile(c.AdminKeyFile)
		if err != nil {
			return c, nil, fmt.Errorf("admin_key_file: %w", err)
		}
		c.AdminKey = strings.TrimSpace(string(text))
	}
	return c, rest, nil
}

// decode fills c and reports every unknown key and wrong type.
func decode(raw map[string]any, c *Config) error {
	d, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		Result: c, TagName: "yaml", ErrorUnused: true,
		DecodeHook: mapstructure.ComposeDecodeHookFunc(durationHook, numberTextHook),
		MatchName:  func(key, field string) bool { return key == field },
	})
	if err != nil {
		return err
	}
	err = d.Decode(raw)
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) {
		return errors.Join(several.Unwrap()...)
	}
	return err
}

// durationHook reads 10s, 2h and 30d.
func durationHook(_, to reflect.Type, value any) (any, error) {
	if to != reflect.TypeFor[time.Duration]() {
		return value, nil
	}
	text, ok := value.(string)
	if !ok {
		return nil, fmt.Errorf("a duration is written like 10s, 2h or 30d, not %v", value)
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		if err == nil && n >= 0 && n < 36500 {
			return time.Duration(n) * day, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return nil, fmt.Errorf("a duration is written like 10s, 2h or 30d, not %q", text)
	}
	return d, nil
}

var numberKinds = []reflect.Kind{reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64}

// numberTextHook lets texts that look like numbers (access keys, price
// factors) stand without quotes.
func numberTextHook(from, to reflect.Type, value any) (any, error) {
	if to.Kind() == reflect.String && slices.Contains(numberKinds, from.Kind()) {
		return fmt.Sprint(value), nil
	}
	return value, nil
}

// parseFlags takes -config and the settings' flags from the arguments. What
// follows the flags is returned.
func parseFlags(src Sources) (file string, rest []string, values map[string]any, err error) {
	flags := flag.NewFlagSet("mediagate", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	file = src.File
	flags.StringVar(&file, "config", file, "settings file")
	given := map[string]setting{}
	texts := map[string]*string{}
	for _, s := range settings() {
		given[s.flag()] = s
		texts[s.flag()] = flags.String(s.flag(), "", s.help)
	}
	if err := flags.Parse(src.Args); err != nil {
		return "", nil, nil, err
	}
	values = map[string]any{}
	var problems []error
	flags.Visit(func(f *flag.Flag) {
		s, ok := given[f.Name]
		if !ok {
			return
		}
		v, err := s.parse(*texts[f.Name])
		if err != nil {
			problems = append(problems, fmt.Errorf("-%s: %w", f.Name, err))
		}
		values[s.path] = v
	})
	return file, flags.Args(), values, errors.Join(problems...)
}

// fromEnv reads the settings among the variables; an unknown one is a problem.
func fromEnv(environ []string) (map[string]any, error) {
	byName := map[string]setting{}
	for _, s := range settings() {
		byName[s.env()] = s
	}
	values := map[string]any{}
	var problems []error
	for _, pair := range environ {
		name, text, _ := strings.Cut(pair, "=")
		short, ok := strings.CutPrefix(name, envPrefix)
		if !ok || slices.Contains(otherVariables, short) || strings.HasPrefix(short, "TEST_") {
			continue
		}
		s, ok := byName[name]
		if !ok {
			problems = append(problems, fmt.Errorf("%s: no such setting", name))
			continue
		}
		v, err := s.parse(text)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
			continue
		}
		values[s.path] = v
	}
	return values, errors.Join(problems...)
}

// parse reads the text of a variable or flag: as it is for texts and
// durations, split at commas or as YAML for lists, as YAML for the rest.
func (s setting) parse(text string) (any, error) {
	if s.kind.Kind() == reflect.String || s.kind == reflect.TypeFor[time.Duration]() {
		return text, nil
	}
	if s.kind == reflect.TypeFor[[]string]() && !strings.HasPrefix(strings.TrimSpace(text), "[") {
		list := []any{}
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item != "" {
				list = append(list, item)
			}
		}
		return list, nil
	}
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		return nil, fmt.Errorf("not readable as YAML: %q", text)
	}
	return v, nil
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

type yamlParser struct{}

func (yamlParser) Unmarshal(text []byte) (map[string]any, error) {
	var m map[string]any
	if err := yaml.UnmarshalWithOptions(text, &m); err != nil {
		return nil, errors.New(yaml.FormatError(err, false, false))
	}
	return maps.Clone(m), nil
}

func (yamlParser) Marshal(m map[string]any) ([]byte, error) { return yaml.Marshal(m) }
