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

func TestWellFormed(t *testing.T) {
	t.Parallel()
	secret, _ := NewKey()
	for i := range len(secret) {
		other := byte('x')
		if secret[i] == other {
			other = 'y'
		}
		if mistyped := secret[:i] + string(other) + secret[i+1:]; wellFormed(mistyped) {
			t.Errorf("one wrong digit at %d goes unnoticed", i)
		}
	}
	for name, bad := range map[string]string{
		"empty": "", "mark": "mgk_", "cut": secret[:len(secret)-1], "longer": secret + "0",
		"upper mark": "MGK_" + secret[4:], "no mark": secret[4:], "padded": " " + secret[:len(secret)-1],
	} {
		if wellFormed(bad) {
			t.Errorf("%s: taken for a key", name)
		}
	}
}
