package api

import (
	"crypto/sha256"
	"strings"
	"testing"
)

func TestNewKey(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	digits := map[rune]bool{}
	for range 500 {
		secret, stored := NewKey()
		if seen[secret] {
			t.Fatal("the same key twice")
		}
		seen[secret] = true
		if stored.Hash != sha256.Sum256([]byte(secret)) || stored.Hash != HashKey(secret) {
			t.Fatal("the hash is not the secret's")
		}
		if !wellFormed(secret) {
			t.Fatalf("%s is not well formed", secret)
		}
		random, ok := strings.CutPrefix(secret, "mgk_")
		if !ok || len(random) != 38 {
			t.Fatalf("%s has not the form of a key", secret)
		}
		for _, digit := range random[:32] {
			digits[digit] = true
		}
		prefix, last := stored.Prefix, stored.LastFour
		if !strings.HasPrefix(secret, prefix) || len(prefix) != 10 || !strings.HasSuffix(secret, last) || len(last) != 4 {
			t.Fatalf("display parts %s and %s of %s", prefix, last, secret)
		}
	}
	if len(digits) != 62 {
		t.Errorf("%d different digits in 16,000, want all 62", len(digits))
	}
}
