package mediagate

import (
	"crypto/subtle"
	"fmt"
	"log/slog"
)

// Redacted stands for a secret wherever it would be printed.
const Redacted = "(redacted)"

// Secret is a text that is never printed: not by fmt, JSON, YAML or a log. The text is behind a
// pointer, so that it stays hidden in an unexported field, too, for which fmt calls no methods.
// The zero Secret is empty.
type Secret struct{ text *string }

// NewSecret makes a secret from a text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{&text}
}

// Secrets makes secrets from texts by name.
func Secrets(texts map[string]string) map[string]Secret {
	secrets := make(map[string]Secret, len(texts))
	for name, text := range texts {
		secrets[name] = NewSecret(text)
	}
	return secrets
}

// Reveal returns the text.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Equal compares two secrets in a time that reveals only their lengths.
func (s Secret) Equal(other Secret) bool {
	return subtle.ConstantTimeCompare([]byte(s.Reveal()), []byte(other.Reveal())) == 1
}

// String returns "" for an empty secret, and Redacted for others.
func (s Secret) String() string {
	if s.text == nil {
		return ""
	}
	return Redacted
}

// Format prints the same as String for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// MarshalText returns the same as String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue returns the same as String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
