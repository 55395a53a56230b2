package mediagate_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
)

func TestErrorKeepsItsCauseOutOfTheMessage(t *testing.T) {
	t.Parallel()
	err := mediagate.Errorf(mediagate.KindUnavailable, "read the task: %w", io.ErrUnexpectedEOF)
	if err.Message != "read the task" {
		t.Errorf("message %q", err.Message)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("the cause is lost")
	}
	if got := mediagate.KindOf(fmt.Errorf("outer: %w", err)); got != mediagate.KindUnavailable {
		t.Errorf("kind %s", got)
	}
	if got := mediagate.KindOf(io.EOF); got != mediagate.KindInternal {
		t.Errorf("a foreign error has kind %s", got)
	}
}

func TestKindsHaveNames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for k := mediagate.KindInternal; k <= mediagate.KindUnsupported; k++ {
		name := k.String()
		if seen[name] {
			t.Errorf("kind %d shares the name %q", k, name)
		}
		seen[name] = true
		if got := mediagate.ParseKind(name); got != k {
			t.Errorf("%q is read as %s", name, got)
		}
	}
	if mediagate.ParseKind("no such kind") != mediagate.KindInternal {
		t.Error("an unknown name must be internal")
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"":                       `""`,
		`a "b"` + "\n":           `"a \"b\"\n"`,
		strings.Repeat("語", 100): `"` + strings.Repeat("語", 100) + `"`,
		strings.Repeat("語", 101): `"` + strings.Repeat("語", 100) + `…"`,
	} {
		if got := mediagate.Quote(given); got != want {
			t.Errorf("%q becomes %s", given, got)
		}
	}
}
