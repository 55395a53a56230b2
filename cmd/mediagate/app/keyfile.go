package app

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"syscall"
	"time"
)

// maxKeyFile exceeds any file of keys.
const maxKeyFile = 64 << 10

func readKeyFile(name string) (string, error) { return readTextFile(name, maxKeyFile) }

// readTextFile reads a trusted file of at most the given size. It refuses a file that everybody may
// write: a key that others can replace protects nothing. Its errors never quote the file.
func readTextFile(name string, most int64) (string, error) {
	file, err := openFile(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	about, err := file.Stat()
	if err != nil {
		return "", err
	}
	if about.Mode().IsRegular() && about.Mode().Perm()&0o002 != 0 {
		return "", fmt.Errorf("%s may be written by anybody (mode %04o): chmod o-w", name, about.Mode().Perm())
	}
	text, err := readAtMost(file, most)
	switch {
	case err != nil:
		return "", err
	case bytes.IndexByte(text, 0) >= 0:
		return "", errors.New(name + " is not a text file")
	}
	return string(text), nil
}

// pipePatience is how long the writer of a pipe may take, such as a shell's <(command).
const pipePatience = 10 * time.Second

// openFile opens a file, or a pipe. A pipe without a writer reads as empty: a reload of the
// settings must not wait for one.
func openFile(name string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err := file.SetReadDeadline(time.Now().Add(pipePatience)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// readAtMost reads a file. It returns an error if the file is larger than most bytes.
func readAtMost(file *os.File, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(text)) > most {
		return nil, fmt.Errorf("%s is larger than %d bytes", file.Name(), most)
	}
	return text, err
}

// maxSettingsFile is the largest size of a settings file in bytes.
const maxSettingsFile = 1 << 20

// readSettingsFile reads a file of at most maxSettingsFile bytes.
func readSettingsFile(name string) ([]byte, error) {
	file, err := openFile(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return readAtMost(file, maxSettingsFile)
}

// Warnings lists secrets that others can see: in files that anybody may read, in the arguments of
// the process, and on the network.
func (s Sources) Warnings(c Config) []string {
	_, flags, err := parseFlags(s)
	if err != nil {
		return nil
	}
	var list []string
	for _, f := range flags {
		secret := f.secret == "true" || f.kind == reflect.TypeFor[[]Channel]() ||
			f.secret == "url" && redactURL(f.text) != f.text
		if secret && f.text != "" {
			list = append(list, f.origin+": others on the machine see the arguments of a process: use a variable or a file")
		}
	}
	files := []struct{ path, name string }{
		{"admin_key_file", c.AdminKeyFile},
		{"encryption_keys_file", c.EncryptionKeysFile},
		{"temporal.tls.key", c.Temporal.TLS.Key},
		{"oidc.client_secret_file", c.OIDC.ClientSecretFile},
	}
	for i, o := range c.Operators {
		files = append(files, struct{ path, name string }{fmt.Sprintf("operators[%d].key_file", i), o.KeyFile})
	}
	for _, f := range files {
		about, err := os.Stat(f.name)
		if err == nil && about.Mode().IsRegular() && about.Mode().Perm()&0o004 != 0 {
			list = append(list, fmt.Sprintf("%s: anybody may read the file (mode %04o)", f.path, about.Mode().Perm()))
		}
	}
	if c.Temporal.APIKey != "" && !c.Temporal.encrypted() {
		list = append(list, "temporal.api_key: goes over the network in clear, since temporal.tls.mode is off")
	}
	return list
}
