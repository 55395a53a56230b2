package hint

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// purpose separates the derived keys from other keys derived from encryption_keys.
const purpose = "mediagate: tokens of vendors' callbacks"

const (
	macBytes = 16
	maxToken = 128 // bytes; our tokens are shorter
)

// Keys make and check tokens. The zero value makes no tokens and accepts none.
type Keys struct{ derived [][]byte }

// NewKeys derives the keys from the encryption keys.
func NewKeys(encryption [][]byte) (Keys, error) {
	var k Keys
	for i, key := range encryption {
		derived, err := hkdf.Key(sha256.New, key, nil, purpose, sha256.Size)
		if err != nil {
			return Keys{}, fmt.Errorf("derive from encryption key %d: %w", i+1, err)
		}
		k.derived = append(k.derived, derived)
	}
	return k, nil
}

// Token returns the token of attempt n of a task, always the same. It is empty without keys.
func (k Keys) Token(taskID string, n int) string {
	if len(k.derived) == 0 {
		return ""
	}
	return token(k.derived[0], taskID, n)
}

// Open returns the attempt that a token names. ok is false for a token that none of the keys made.
func (k Keys) Open(text string) (taskID string, n int, ok bool) {
	if len(text) > maxToken {
		return "", 0, false
	}
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return "", 0, false
	}
	taskID = parts[0]
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		return "", 0, false
	}
	for _, key := range k.derived {
		if subtle.ConstantTimeCompare([]byte(token(key, taskID, n)), []byte(text)) == 1 {
			return taskID, n, true
		}
	}
	return "", 0, false
}

// token returns the name of the attempt and its MAC. Open compares the whole text, so that an
// attempt has a single token.
func token(key []byte, taskID string, n int) string {
	name := taskID + "." + strconv.Itoa(n)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(name))
	return name + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:macBytes])
}
