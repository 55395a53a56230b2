package app

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/goccy/go-yaml"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/limit"
)

// redacted replaces a secret that is set.
const redacted = mediagate.Redacted

// Print returns the settings in force as YAML, without secrets.
func (c Config) Print() (string, error) {
	text, err := yaml.Marshal(printable(reflect.ValueOf(c)))
	return string(text), err
}

// Limits lists the limits of a process with these settings on this machine, as YAML comments.
func (c Config) Limits() string {
	var b strings.Builder
	b.WriteString("# The limits of a process: name, capacity, and the tenants that share it.\n")
	for _, f := range limit.For(c.sizes()).Figures() {
		_, _ = fmt.Fprintf(&b, "# %-18s %10d  %s\n", f.Name, f.Capacity, f.Tenant)
	}
	return b.String()
}

// Files returns YAML comments that name the vendors of vendor_dir, the models of catalog_dir, and
// the channels that serve these models. It expects settings without problems.
func (c Config) Files() string {
	var b strings.Builder
	for _, file := range c.vendors.Loaded() {
		_, _ = fmt.Fprintf(&b, "# vendor %s: ok, examples: %d\n", file.Name, len(file.Examples))
	}
	models, err := loadCatalog(c)
	if len(err) > 0 {
		return b.String()
	}
	channels := domainChannels(c.Channels, models)
	for _, m := range models.Models() {
		if !m.Added || m.ID != m.Canonical {
			continue
		}
		var providers, serving []string
		for _, o := range m.Operations() {
			for _, r := range o.Routes() {
				providers = append(providers, r.Provider)
				for _, ch := range channels {
					if ch.Serves(m.ID, r) {
						serving = append(serving, ch.Name)
					}
				}
			}
		}
		if len(serving) > 0 {
			_, _ = fmt.Fprintf(&b, "# model %s: ok, served by %s\n", m.ID, distinct(serving))
		} else {
			_, _ = fmt.Fprintf(&b, "# model %s: no channel serves it; its providers: %s\n", m.ID, distinct(providers))
		}
	}
	return b.String()
}

// distinct lists the names in alphabetical order.
func distinct(names []string) string {
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// Format prints the same as Print for every verb, since the settings may end up in a message or a
// panic.
func (c Config) Format(f fmt.State, _ rune) { format(f, c) }

// Format writes the settings of the bucket without its secret key.
func (c S3) Format(f fmt.State, _ rune) { format(f, c) }

// Format prints the settings of Temporal without the API key.
func (t Temporal) Format(f fmt.State, _ rune) { format(f, t) }

// Format prints the channel without its credentials.
func (c Channel) Format(f fmt.State, _ rune) { format(f, c) }

// MarshalJSON returns the text of Format.
func (c Config) MarshalJSON() ([]byte, error) { return json.Marshal(fmt.Sprint(c)) }

// MarshalJSON returns the text of Format.
func (c S3) MarshalJSON() ([]byte, error) { return json.Marshal(fmt.Sprint(c)) }

// MarshalJSON returns the text of Format.
func (t Temporal) MarshalJSON() ([]byte, error) { return json.Marshal(fmt.Sprint(t)) }

// MarshalJSON returns the text of Format.
func (c Channel) MarshalJSON() ([]byte, error) { return json.Marshal(fmt.Sprint(c)) }

func format(f fmt.State, settings any) {
	text, err := yaml.Marshal(printable(reflect.ValueOf(settings)))
	if err != nil {
		text = []byte(redacted)
	}
	_, _ = f.Write(text)
}

// printable converts a struct to an ordered map with secrets redacted.
func printable(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Struct:
		if p, ok := reflect.TypeAssert[Proxies](v); ok {
			if len(p.Networks) > 0 {
				return p.Networks
			}
			return p.Hops
		}
		m := yaml.MapSlice{}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			name, opts, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if strings.Contains(opts, "omitempty") && v.Field(i).IsZero() {
				continue
			}
			m = append(m, yaml.MapItem{Key: name, Value: field(v.Field(i), f.Tag.Get("secret"))})
		}
		return m
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return printable(v.Elem())
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = printable(v.Index(i))
		}
		return list
	case reflect.Map:
		m := map[string]any{}
		for _, k := range v.MapKeys() {
			m[k.String()] = printable(v.MapIndex(k))
		}
		return m
	default:
		if d, ok := reflect.TypeAssert[time.Duration](v); ok {
			return d.String()
		}
		if size, ok := reflect.TypeAssert[ByteSize](v); ok {
			return size.String()
		}
		return v.Interface()
	}
}

func field(v reflect.Value, secret string) any {
	switch {
	case secret == "" || v.IsZero():
		return printable(v)
	case secret == "url" && v.String() == noProxy: // the channel bypasses outbound.proxy
		return noProxy
	case secret == "url":
		return redactURL(v.String())
	case v.Kind() == reflect.Map:
		m := map[string]any{}
		for _, k := range v.MapKeys() {
			m[k.String()] = redacted
		}
		return m
	case v.Kind() == reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = redacted
		}
		return list
	default:
		return redacted
	}
}

// redactURL keeps the parts of a URL that name a place: scheme, host, path, and parameters that
// are no credentials. It redacts a text as a whole if it may have another form, such as that of a
// connection string.
func redactURL(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Scheme == "" || u.Opaque != "" || u.Fragment != "" || strings.ContainsFunc(s, unicode.IsSpace) {
		return redacted
	}
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		return redacted
	}
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	if strings.Contains(tail, "@") {
		return redacted // this may be the end of a password with a slash
	}
	if i := strings.LastIndex(authority, "@"); i >= 0 {
		authority = redacted + authority[i:]
	}
	path, query, asks := strings.Cut(tail, "?")
	if asks {
		path += "?" + redactQuery(query)
	}
	return scheme + "://" + authority + path
}

// secretParameter matches the names of credentials: password, sslpassword, X-Amz-Signature,
// access_token and so on.
var secretParameter = regexp.MustCompile(`(?i)pass|pwd|secret|token|key|cred|sig|auth`)

func redactQuery(query string) string {
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		raw, _, given := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(raw)
		switch {
		case err != nil || strings.Contains(pair, ";"):
			pairs[i] = redacted
		case given && secretParameter.MatchString(name):
			pairs[i] = raw + "=" + redacted
		}
	}
	return strings.Join(pairs, "&")
}
