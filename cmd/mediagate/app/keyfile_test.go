package app_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/cmd/mediagate/app"
)

// keys are encryption keys as settings hold them.
func keys(texts ...string) []string {
	list := make([]string, len(texts))
	for i, text := range texts {
		list[i] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	return list
}

const (
	firstKey  = "0123456789abcdef0123456789abcdef"
	secondKey = "fedcba9876543210fedcba9876543210"
)

// written makes a file of that mode.
func written(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "keys")
	must(t, os.WriteFile(name, []byte(text), 0o600))
	if err := os.Chmod(name, mode); err != nil { // past the umask
		t.Fatal(err)
	}
	return name
}

// TestEncryptionKeysFile checks that the encryption keys come from the settings or from a file,
// in its order. The layers of settings decide as for the admin key.
func TestEncryptionKeysFile(t *testing.T) {
	t.Parallel()
	first, both := keys(firstKey), keys(secondKey, firstKey)
	name := written(t, "\n"+both[0]+"  \r\n\n"+both[1], 0o600)
	inFile, fileInFile := "encryption_keys: ["+first[0]+"]\n", "encryption_keys_file: "+name+"\n"
	loose := written(t, first[0], 0o602)
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	for name, test := range map[string]struct {
		base     []string
		text     string
		env      []string
		want     []string
		problems []string
	}{
		"file over base":                  {base: first, text: fileInFile, want: both},
		"several keys in a variable":      {env: []string{"MEDIAGATE_ENCRYPTION_KEYS=" + strings.Join(both, ",")}, want: both},
		"both in the file":                {text: inFile + fileInFile, want: first, problems: []string{"encryption_keys_file: excludes encryption_keys: set one of them"}},
		"a folder":                        {text: "encryption_keys_file: /\n", problems: []string{"encryption_keys_file: read /: is a directory"}},
		"an endless file":                 {text: "encryption_keys_file: /dev/zero\n", problems: []string{"encryption_keys_file: /dev/zero is larger than 65536 bytes"}},
		"a pipe without a writer":         {text: "encryption_keys_file: " + pipe + "\n", problems: []string{"encryption_keys: must hold at least one key"}},
		"a file without keys":             {text: "encryption_keys_file: /dev/null\n", problems: []string{"encryption_keys: must hold at least one key"}},
		"a file that others may write to": {text: "encryption_keys_file: " + loose + "\n", problems: []string{"encryption_keys_file: " + loose + " may be written by anybody (mode 0602): chmod o-w"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src := app.Sources{Base: app.Defaults(), Env: test.env}
			src.Base.AdminKey, src.Base.DatabaseURL = firstKey, "postgres://db/gate"
			src.Base.EncryptionKeys = test.base
			src.File = file(t, test.text)
			c, err := app.Load(src)
			if diff := cmp.Diff(test.problems, lines(err)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want, c.EncryptionKeys); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWeakKeysAreRefused(t *testing.T) {
	t.Parallel()
	const regular = "repeats the same few characters: take a random one, as of openssl rand -base64 32"
	for name, test := range map[string]struct {
		admin    string
		keys     []string
		problems []string
	}{
		"good ones":         {admin: firstKey, keys: keys(firstKey, secondKey)},
		"zeros":             {admin: firstKey, keys: keys(strings.Repeat("\x00", 32)), problems: []string{"encryption_keys[0]: " + regular}},
		"a repeated byte":   {admin: firstKey, keys: keys(firstKey, strings.Repeat("k", 32)), problems: []string{"encryption_keys[1]: " + regular}},
		"a repeated word":   {admin: firstKey, keys: keys(strings.Repeat("key!", 8)), problems: []string{"encryption_keys[0]: " + regular}},
		"too short":         {admin: firstKey, keys: keys(firstKey, firstKey[:31]), problems: []string{"encryption_keys[1]: must be base64 of 32 bytes"}},
		"too long":          {admin: firstKey, keys: keys(firstKey + "0"), problems: []string{"encryption_keys[0]: must be base64 of 32 bytes"}},
		"an admin key of x": {admin: strings.Repeat("x", 40), keys: keys(firstKey), problems: []string{"admin_key: " + regular}},
		"one that repeats":  {admin: strings.Repeat("secret", 8), keys: keys(firstKey), problems: []string{"admin_key: " + regular}},
		"an empty one":      {keys: keys(firstKey), problems: []string{"admin_key: must have at least 32 characters"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := app.Defaults()
			c.DatabaseURL, c.AdminKey, c.EncryptionKeys = "postgres://db/gate", test.admin, test.keys
			if diff := cmp.Diff(test.problems, lines(c.Validate())); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	const arguments = ": others on the machine see the arguments of a process: use a variable or a file"
	open, shut := written(t, keys(firstKey)[0], 0o644), written(t, keys(firstKey)[0], 0o640)
	for name, test := range map[string]struct {
		args []string
		env  []string
		want []string
	}{
		"nothing":                 {},
		"shut files":              {env: []string{"MEDIAGATE_ADMIN_KEY_FILE=" + shut, "MEDIAGATE_ENCRYPTION_KEYS_FILE=" + shut}},
		"open files":              {env: []string{"MEDIAGATE_ADMIN_KEY_FILE=" + open}, args: []string{"-encryption-keys-file", open}, want: []string{"admin_key_file: anybody may read the file (mode 0644)", "encryption_keys_file: anybody may read the file (mode 0644)"}},
		"secrets in variables":    {env: []string{"MEDIAGATE_ADMIN_KEY=" + firstKey, "MEDIAGATE_DATABASE_URL=postgres://gate:hunter2@db/gate"}},
		"a key in the arguments":  {args: []string{"-admin-key", firstKey}, want: []string{"-admin-key" + arguments}},
		"a URL without password":  {args: []string{"-database-url", "postgres://db/gate"}},
		"a URL with a password":   {args: []string{"-database-url", "postgres://gate:hunter2@db/gate"}, want: []string{"-database-url" + arguments}},
		"an API key in clear":     {env: []string{"MEDIAGATE_TEMPORAL_API_KEY=hunter2", "MEDIAGATE_TEMPORAL_TLS_MODE=off"}, want: []string{"temporal.api_key: goes over the network in clear, since temporal.tls.mode is off"}},
		"an API key over TLS":     {env: []string{"MEDIAGATE_TEMPORAL_API_KEY=hunter2"}},
		"an open private key":     {env: []string{"MEDIAGATE_TEMPORAL_TLS_KEY=" + open}, want: []string{"temporal.tls.key: anybody may read the file (mode 0644)"}},
		"channels as an argument": {args: []string{"-channels", "[{name: k, provider: kling, base_url: 'https://x', credentials: {api_key: hunter2}}]"}, want: []string{"-channels" + arguments}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src := app.Sources{Base: app.Defaults(), Env: test.env, Args: test.args}
			c, _ := app.Load(src)
			if diff := cmp.Diff(test.want, src.Warnings(c)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
