package mediagate

import (
	"crypto/subtle"
	"fmt"
	"log/slog"
)

// Redacted stands for a secret wherever it would be printed.
const Redacted = "(redacted)"

// Secret is a text that nothing prints: no verb of fmt, neither JSON nor YAML nor
// a log. It is behind a pointer, so that it stays unseen in an unexported field
// too, whose methods fmt does not call. The zero Secret is empty.
type Secret struct{ text *string }

// NewSecret makes a secret of a text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{&text}
}

// Secrets makes secrets of texts by name.
func Secrets(texts map[string]string) map[string]Secret {
	secrets := make(map[string]Secret, len(texts))
	for name, text := range texts {
		secrets[name] = NewSecret(text)
	}
	return secrets
}

// Reveal is the text itself.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Equal compares in a time that tells nothing of the texts but their lengths.
func (s Secret) Equal(other Secret) bool {
	return subtle.ConstantTimeCompare([]byte(s.Reveal()), []byte(other.Reveal())) == 1
}

// String is empty for an empty secret, else Redacted.
func (s Secret) String() string {
	if s.text == nil {
		return ""
	}
	return Redacted
}

// Format writes what String does, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// MarshalText writes what String does.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue writes what String does.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
