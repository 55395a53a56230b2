package mediagate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
)

func TestSecretIsNeverPrinted(t *testing.T) {
	t.Parallel()
	const text = "hunter2-hunter2"
	type inner struct {
		shown  mediagate.Secret
		byName map[string]mediagate.Secret
	}
	secret := mediagate.NewSecret(text)
	byName := mediagate.Secrets(map[string]string{"key": text})
	for name, value := range map[string]any{
		"alone":         secret,
		"by pointer":    &secret,
		"unexported":    inner{secret, byName},
		"by a pointer":  &inner{secret, byName},
		"in a map":      byName,
		"a channel":     mediagate.Channel{Name: "a", Credentials: byName, CallbackSecret: secret},
		"in a channel":  struct{ channel mediagate.Channel }{mediagate.Channel{Credentials: byName, CallbackSecret: secret}},
		"of a webhook":  []mediagate.WebhookSecret{{Secret: secret}},
		"in an error":   fmt.Errorf("refused %v: %w", secret, errors.New(secret.String())),
		"as any nested": []any{map[string]any{"a": inner{secret, byName}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			slog.New(slog.NewJSONHandler(&log, nil)).Info("it", "value", value)
			slog.New(slog.NewTextHandler(&log, nil)).Info("it", "value", value)
			printed := log.String()
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
				printed += fmt.Sprintf(verb, value) + "\n"
			}
			document, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			printed += string(document)
			if strings.Contains(printed, "hunter2") || strings.Contains(strings.ToLower(printed), fmt.Sprintf("%x", "hunter2")) {
				t.Errorf("printed: %s", printed)
			}
		})
	}
}

func TestSecretKeepsItsText(t *testing.T) {
	t.Parallel()
	if got := mediagate.NewSecret("a").Reveal() + mediagate.NewSecret("").Reveal() + (mediagate.Secret{}).Reveal(); got != "a" {
		t.Errorf("revealed: %q", got)
	}
	if mediagate.NewSecret("") != (mediagate.Secret{}) {
		t.Error("an empty secret is not the zero one")
	}
	if got := fmt.Sprintf("%v|%v|", mediagate.Secret{}, mediagate.NewSecret("a")); got != "|(redacted)|" {
		t.Errorf("printed: %q", got)
	}
	same := mediagate.Secrets(map[string]string{"a": "1", "b": ""})
	if diff := cmp.Diff(same, mediagate.Secrets(map[string]string{"a": "1", "b": ""})); diff != "" {
		t.Errorf("equal secrets differ:\n%s", diff)
	}
	if mediagate.NewSecret("a").Equal(mediagate.NewSecret("b")) {
		t.Error("other secrets are equal")
	}
}
