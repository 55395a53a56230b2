package all_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/all"
)

func TestNewOfUnknownProvider(t *testing.T) {
	t.Parallel()
	p, err := all.Builtin().New(mediagate.Channel{Name: "a", Provider: "nobody"}, providers.Options{})
	if p != nil || !mediagate.Is(err, mediagate.KindInvalid) {
		t.Fatalf("New = %v, %v", p, err)
	}
	for _, want := range []string{`channel "a"`, "nobody", strings.Join(all.Builtin().Names(), ", ")} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}

// TestNewFailsWithoutProvider checks that a failed constructor returns a nil interface, not an
// interface that holds a nil pointer.
func TestNewFailsWithoutProvider(t *testing.T) {
	t.Parallel()
	for _, name := range all.Builtin().Names() {
		p, err := all.Builtin().New(mediagate.Channel{Name: "a", Provider: name}, providers.Options{})
		if p != nil || err == nil {
			t.Errorf("%s: New = %v, %v", name, p, err)
		}
	}
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	channel := func(provider string, credentials map[string]string) mediagate.Channel {
		return mediagate.Channel{Provider: provider, Credentials: mediagate.Secrets(credentials)}
	}
	key := map[string]string{"access_key": "AK1", "secret_key": "SK1"}
	base := all.Builtin().Fingerprint(channel("kling", key))
	for name, tc := range map[string]struct {
		channel mediagate.Channel
		same    bool
	}{
		"same":           {channel("kling", key), true},
		"new secret":     {channel("kling", map[string]string{"access_key": "AK1", "secret_key": "SK2"}), true},
		"new access key": {channel("kling", map[string]string{"access_key": "AK2", "secret_key": "SK1"}), false},
		"other vendor":   {channel("dashscope", map[string]string{"api_key": "AK1"}), false},
		"unknown vendor": {channel("nobody", key), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := all.Builtin().Fingerprint(tc.channel); (got == base) != tc.same {
				t.Errorf("same = %v, want %v", got == base, tc.same)
			}
		})
	}
}

// TestFingerprintOfALabel covers D11: a label names the account whatever the credentials are. The
// fingerprint that the credentials have without the label stays known.
func TestFingerprintOfALabel(t *testing.T) {
	t.Parallel()
	channel := func(provider, label, key string) mediagate.Channel {
		return mediagate.Channel{Provider: provider, Account: label, Credentials: mediagate.Secrets(map[string]string{"api_key": key})}
	}
	base := channel("dashscope", "acme", "K1")
	if all.Builtin().Fingerprint(base) != all.Builtin().Fingerprint(channel("dashscope", "acme", "K2")) {
		t.Error("a new key changes the fingerprint of a label")
	}
	for name, other := range map[string]mediagate.Channel{
		"other label":          channel("dashscope", "acme-2", "K1"),
		"other vendor":         channel("kling", "acme", "K1"),
		"no label":             channel("dashscope", "", "K1"),
		"a key like the label": channel("dashscope", "", "acme"),
	} {
		if all.Builtin().Fingerprint(base) == all.Builtin().Fingerprint(other) {
			t.Errorf("%s: the same fingerprint", name)
		}
	}
	plain := all.Builtin().Fingerprint(channel("dashscope", "", "K1"))
	if diff := cmp.Diff([]string{all.Builtin().Fingerprint(base), plain}, all.Builtin().Fingerprints(base)); diff != "" {
		t.Errorf("fingerprints (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{plain}, all.Builtin().Fingerprints(channel("dashscope", "", "K1"))); diff != "" {
		t.Errorf("fingerprints without a label (-want +got):\n%s", diff)
	}
	// The databases of running gateways hold this value, so it must never change.
	if want := "506f784ebf751d4be3b28870"; plain != want {
		t.Errorf("fingerprint %s, want %s", plain, want)
	}
}

// TestAdaptersConform checks that each adapter runs the conformance suite and has golden files.
func TestAdaptersConform(t *testing.T) {
	t.Parallel()
	for _, name := range all.Builtin().Names() {
		files, err := filepath.Glob(filepath.Join("..", name, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		var tests strings.Builder
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(text)
		}
		for _, call := range []string{"providertest.Run(t, ", ".Golden(t, "} {
			if !strings.Contains(tests.String(), call) {
				t.Errorf("%s: no test calls %s…)", name, call)
			}
		}
	}
}
