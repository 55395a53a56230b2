package hint_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mediagate/mediagate/internal/hint"
)

const task = "task_01JZZZZZZZZZZZZZZZZZZZZZZZ"

func keys(t *testing.T, fill ...byte) hint.Keys {
	t.Helper()
	var encryption [][]byte
	for _, b := range fill {
		encryption = append(encryption, bytes.Repeat([]byte{b}, 32))
	}
	k, err := hint.NewKeys(encryption)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// A token is stable: a change of its form takes the callbacks of all jobs under way.
func TestToken(t *testing.T) {
	t.Parallel()
	k := keys(t, 1, 2)
	got := k.Token(task, 3)
	if want := task + ".3.acZqgBg_n8PjnF6R9YdG1Q"; got != want {
		t.Errorf("token %s, want %s", got, want)
	}
	if id, n, ok := k.Open(got); id != task || n != 3 || !ok {
		t.Errorf("opens as %q, %d, %t", id, n, ok)
	}
}

func TestTokensOfFormerKeysOpen(t *testing.T) {
	t.Parallel()
	before, after := keys(t, 1), keys(t, 2, 1)
	if id, n, ok := after.Open(before.Token(task, 1)); id != task || n != 1 || !ok {
		t.Errorf("opens as %q, %d, %t", id, n, ok)
	}
	if after.Token(task, 1) == before.Token(task, 1) {
		t.Error("the first key does not make the token")
	}
}

func TestWrongTokens(t *testing.T) {
	t.Parallel()
	k := keys(t, 1)
	own := k.Token(task, 1)
	mac := own[strings.LastIndex(own, ".")+1:]
	for name, token := range map[string]string{
		"empty":                  "",
		"words":                  "callback",
		"truncated":              own[:len(own)-1],
		"with something behind":  own + "A",
		"no MAC":                 task + ".1.",
		"no number":              task + "." + mac,
		"another attempt's":      task + ".2." + mac,
		"another task's":         "task_01JZZZZZZZZZZZZZZZZZZZZZZY.1." + mac,
		"another spelling of 1":  task + ".01." + mac,
		"a sign":                 task + ".+1." + mac,
		"a number without bound": task + "." + strings.Repeat("9", 40) + "." + mac,
		"another key's":          keys(t, 2).Token(task, 1),
		"last bits of the MAC":   own[:len(own)-1] + "x",
		"upper case":             strings.ToUpper(own),
		"long":                   strings.Repeat("x", 1<<20) + own,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if id, n, ok := k.Open(token); ok || id != "" || n != 0 {
				t.Errorf("opens as %q, %d, %t", id, n, ok)
			}
		})
	}
}

func TestWithoutKeys(t *testing.T) {
	t.Parallel()
	var none hint.Keys
	if got := none.Token(task, 1); got != "" {
		t.Errorf("token %q", got)
	}
	if _, _, ok := none.Open(keys(t, 1).Token(task, 1)); ok {
		t.Error("opens a token")
	}
}
