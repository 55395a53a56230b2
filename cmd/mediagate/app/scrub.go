package app

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// minScrubbed is the length from which a secret is scrubbed, and minWord that of a secret with only
// letters: shorter ones occur in common words.
const (
	minScrubbed = 8
	minWord     = 12
)

func common(secret string) bool {
	notLetter := func(r rune) bool { return !unicode.IsLetter(r) }
	return len(secret) < minScrubbed || len(secret) < minWord && !strings.ContainsFunc(secret, notLetter)
}

// issued matches the secrets that we make ourselves, API keys and webhook secrets. Of a key it
// leaves what operators see.
var issued = regexp.MustCompile(`(mgk_[0-9A-Za-z]{6})[0-9A-Za-z]{32}|(whsec_)[A-Za-z0-9+/_-]{40,}=*`)

// scrubbed is a writer that removes secrets. No code writes a secret on purpose: the writer catches
// mistakes, and the lines of libraries.
type scrubbed struct {
	to    io.Writer
	known *strings.Replacer
}

// Scrub removes secrets from each write: as they are, as in JSON and URLs, in base64 and in
// hexadecimal.
func Scrub(to io.Writer, secrets ...string) io.Writer {
	var forms []string
	for _, secret := range secrets {
		if common(secret) {
			continue
		}
		raw := []byte(secret)
		quoted, _ := json.Marshal(secret) // never fails for a string
		within := string(quoted[1 : len(quoted)-1])
		twice, _ := json.Marshal(within)
		forms = append(forms, secret, within, string(twice[1:len(twice)-1]), url.QueryEscape(secret), url.PathEscape(secret),
			base64.StdEncoding.EncodeToString(raw), base64.URLEncoding.EncodeToString(raw),
			base64.RawStdEncoding.EncodeToString(raw),
			base64.RawURLEncoding.EncodeToString(raw), hex.EncodeToString(raw), strings.ToUpper(hex.EncodeToString(raw)))
	}
	// The longest first, since one secret may be the beginning of another.
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(forms))
	for _, form := range forms {
		pairs = append(pairs, form, redacted)
	}
	return scrubbed{to, strings.NewReplacer(pairs...)}
}

// Write writes the text without secrets, and reports all of it as written.
func (s scrubbed) Write(p []byte) (int, error) {
	text := s.known.Replace(string(p))
	if strings.Contains(text, "mgk_") || strings.Contains(text, "whsec_") {
		text = issued.ReplaceAllString(text, "${1}${2}"+redacted)
	}
	if _, err := io.WriteString(s.to, text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Scrub returns the text without the secrets in the settings.
func (c Config) Scrub(text string) string {
	var b bytes.Buffer
	_, _ = io.WriteString(Scrub(&b, c.secrets()...), text) // a buffer never fails
	return b.String()
}

// secrets returns the values that the settings' tags declare secret.
func (c Config) secrets() []string {
	var list []string
	var walk func(v reflect.Value, tag string)
	walk = func(v reflect.Value, tag string) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i), v.Type().Field(i).Tag.Get("secret"))
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i), tag)
			}
		case reflect.Map:
			for _, key := range v.MapKeys() {
				walk(v.MapIndex(key), tag)
			}
		case reflect.String:
			switch tag {
			case "true":
				list = append(list, parts(v.String())...)
			case "url":
				list = append(list, urlSecrets(v.String())...)
			}
		default:
		}
	}
	walk(reflect.ValueOf(c), "")
	return list
}

// parts returns a secret and its parts: the bytes of a secret in base64, and the texts of a secret
// in JSON with their lines, such as those of a private key.
func parts(secret string) []string {
	list := []string{secret}
	if raw, err := base64.StdEncoding.DecodeString(secret); err == nil && len(raw) >= minScrubbed {
		list = append(list, string(raw))
	}
	var document map[string]any
	if json.Unmarshal([]byte(secret), &document) == nil {
		for name, value := range document {
			if text, ok := value.(string); ok && secretParameter.MatchString(name) && !strings.Contains(text, "://") {
				list = append(list, text)
				for line := range strings.Lines(text) {
					if line = strings.TrimSpace(line); !strings.Contains(line, "-----") {
						list = append(list, line)
					}
				}
			}
		}
	}
	return list
}

// urlSecrets returns the credentials in a URL.
func urlSecrets(text string) []string {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return []string{text} // another form, which may contain a password
	}
	var list []string
	if password, ok := u.User.Password(); ok {
		list = append(list, password)
	}
	for name, values := range u.Query() {
		if secretParameter.MatchString(name) {
			list = append(list, values...)
		}
	}
	return list
}
