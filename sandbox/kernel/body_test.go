package kernel_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

func TestNumbers(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]struct {
		v     float64
		ok    bool
		share string // what is wrong with it
	}{
		`0`: {0, true, ""}, `1`: {1, true, ""}, `0.5`: {0.5, true, ""}, `1.01`: {1.01, true, "from 0 to 1"}, `-0.01`: {-0.01, true, "from 0 to 1"},
		`"1"`: {0, false, "must be a number"}, `null`: {0, false, "must be a number"}, `1e999`: {0, false, "must be a number"},
	} {
		read := func(name string) (*kernel.Object, float64, bool) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(`{"n":`+value+`}`))
			r.Header.Set("Content-Type", "application/json")
			in, err := kernel.ReadObject(r, 100)
			if err != nil {
				t.Fatal(err)
			}
			in.Share(name)
			v, ok := in.Number(name)
			return in, v, ok
		}
		in, v, ok := read("n")
		said := ""
		if in.Err() != nil {
			said = in.Err().Error()
		}
		if ok != want.ok || ok && v != want.v || !strings.Contains(said, want.share) || (said == "") != (want.share == "") {
			t.Errorf("%s: %g, %v, %q", value, v, ok, said)
		}
		if in, _, ok := read("absent"); ok || in.Err() != nil {
			t.Errorf("absent: %v, %v", ok, in.Err())
		}
	}
}

func TestSaying(t *testing.T) {
	t.Parallel()
	for want, texts := range map[string][]string{
		"a":                   {"", "a", "b"},
		"[[sandbox: ref=1]]b": {"a", "[[sandbox: ref=1]]b", "[[sandbox: ref=2]]"},
		"":                    {"", ""},
	} {
		if got := kernel.Saying(texts...); got != want {
			t.Errorf("%q of %q", got, texts)
		}
	}
}
