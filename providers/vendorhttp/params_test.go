package vendorhttp

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
)

func TestAtMost(t *testing.T) {
	t.Parallel()
	if err := CheckLength("title", strings.Repeat("ä", 80), 80); err != nil {
		t.Error(err)
	}
	err := CheckLength("title", strings.Repeat("ä", 81), 80)
	e, ok := errors.AsType[*mediagate.Error](err)
	if !ok || e.Kind != mediagate.KindInvalid || e.Param != "title" || !strings.Contains(e.Message, "80 characters") {
		t.Errorf("%v", err)
	}
}

func TestHundredth(t *testing.T) {
	t.Parallel()
	for n, want := range map[json.Number]json.Number{
		"0": "0", "1.006": "1.01", "30": "30", "12.50": "12.5", "0.333": "0.33", "1e1": "10", "": "", "a": "a",
	} {
		if got := RoundToHundredth(n); got != want {
			t.Errorf("%s: %s, want %s", n, got, want)
		}
	}
}
