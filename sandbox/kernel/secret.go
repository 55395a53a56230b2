package kernel

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"math/big"
)

// equalSecrets compares secrets in a time that does not depend on where they differ.
func equalSecrets(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// fingerprint returns a hash that identifies a credential in the store.
func fingerprint(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:6])
}

// NumericID returns a random id with this number of digits.
func NumericID(digits int64) string {
	least := new(big.Int).Exp(big.NewInt(10), big.NewInt(digits-1), nil)
	n, err := rand.Int(rand.Reader, new(big.Int).Mul(least, big.NewInt(9)))
	if err != nil {
		// rand.Reader ends the process instead of returning an error.
		return ""
	}
	return n.Add(n, least).String()
}

// UUID returns a random UUID.
func UUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return dashed(b[:])
}

// DeriveID returns an id in the form of a UUID that is computed from another id.
func DeriveID(id, what string) string {
	sum := sha256.Sum256([]byte(id + "\x00" + what))
	return dashed(sum[:16])
}

func dashed(b []byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
