package datadir

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Secrets are created at the first start and kept.
type Secrets struct {
	S3AccessKeyID     string `json:"s3_access_key_id"`
	S3SecretAccessKey string `json:"s3_secret_access_key"`
	AdminKey          string `json:"admin_key"`
	// EncryptionKey is 32 bytes in base64.
	EncryptionKey string `json:"encryption_key"`
	// Key is the API key of the account demo. It is created once the database exists, and stored
	// with SetKey.
	Key string `json:"key,omitempty"`
}

// Secrets returns the secrets of the folder. The first call creates them.
func (d *Dir) Secrets() (Secrets, error) {
	data, err := os.ReadFile(d.Path(secretsName))
	if errors.Is(err, fs.ErrNotExist) {
		made := Secrets{
			S3AccessKeyID:     "local-" + rand.Text()[:14],
			S3SecretAccessKey: rand.Text() + rand.Text(),
			AdminKey:          "adm_" + rand.Text() + rand.Text(),
			EncryptionKey:     newEncryptionKey(),
		}
		return made, d.writeJSON(secretsName, made)
	}
	if err != nil {
		return Secrets{}, fmt.Errorf("secrets: %w", err)
	}
	var kept Secrets
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&kept); err != nil {
		// The decoder's text may quote the file.
		return Secrets{}, fmt.Errorf("secrets: %s is damaged", d.Path(secretsName))
	}
	if kept.S3AccessKeyID == "" || kept.S3SecretAccessKey == "" || kept.AdminKey == "" || kept.EncryptionKey == "" {
		return Secrets{}, fmt.Errorf("secrets: %s lacks an entry", d.Path(secretsName))
	}
	return kept, nil
}

// SetKey stores the API key of the account demo beside the other secrets.
func (d *Dir) SetKey(key string) error {
	kept, err := d.Secrets()
	if err != nil {
		return err
	}
	kept.Key = key
	return d.writeJSON(secretsName, kept)
}

func newEncryptionKey() string {
	var key [32]byte
	_, _ = rand.Read(key[:]) // ends the process instead of returning an error
	return base64.StdEncoding.EncodeToString(key[:])
}
