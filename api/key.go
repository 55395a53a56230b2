package api

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"strings"
)

// A key reads "mgk_", 32 random base62 digits (190.5 bits), and 6 check
// digits: the CRC-32 of all before them. So a mistyped or made-up key is
// refused without asking the database.
const (
	keyMark   = "mgk_"
	keyRandom = 32
	keyCheck  = 6
	keyLength = len(keyMark) + keyRandom + keyCheck

	base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// NewKey makes the secret of an API key and the hash under which it is
// stored. The secret itself is stored nowhere.
func NewKey() (secret string, hash [32]byte) {
	digits := make([]byte, 0, keyLength)
	digits = append(digits, keyMark...)
	var pool [2 * keyRandom]byte
	for len(digits) < len(keyMark)+keyRandom {
		_, _ = rand.Read(pool[:]) // never fails: the runtime aborts the program instead
		for _, b := range pool {
			// 248 is the largest multiple of 62 in a byte: above it the
			// remainder would favour the first digits.
			if b < 248 && len(digits) < len(keyMark)+keyRandom {
				digits = append(digits, base62[b%62])
			}
		}
	}
	secret = string(digits) + checkDigits(string(digits))
	return secret, HashKey(secret)
}

// HashKey is the form in which a key is stored and looked up.
func HashKey(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

// KeyDisplay returns the parts of a key that may be shown after its creation.
func KeyDisplay(secret string) (prefix, lastFour string) {
	if len(secret) != keyLength {
		return "", ""
	}
	return secret[:len(keyMark)+6], secret[keyLength-4:]
}

// wellFormed reports whether the text could be a key of ours.
func wellFormed(secret string) bool {
	if len(secret) != keyLength || !strings.HasPrefix(secret, keyMark) {
		return false
	}
	body, check := secret[:keyLength-keyCheck], secret[keyLength-keyCheck:]
	return checkDigits(body) == check
}

func checkDigits(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	var out [keyCheck]byte
	for i := range out {
		out[keyCheck-1-i] = base62[sum%62]
		sum /= 62
	}
	return string(out[:])
}
