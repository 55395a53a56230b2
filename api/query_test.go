package api

import (
	"net/url"
	"testing"
	"time"
)

func TestIntQuery(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"": 20, "1": 1, "100": 100, "0": -1, "101": -1, "-1": -1, "+5": -1, "5.0": -1, "x": -1, " 5": -1,
		"99999999999999999999": -1, "٣": -1,
	} {
		got, err := intQuery(url.Values{"limit": {text}}, "limit", 1, 100, 20)
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
		if err != nil && domainError(err).Param != "limit" {
			t.Errorf("%q: param %q", text, domainError(err).Param)
		}
	}
}

func TestTimeQuery(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := map[string]struct {
		text string
		want time.Time // zero and not empty: refused
	}{
		"absent":         {"", time.Time{}},
		"seconds":        {"1767323045", at},
		"epoch":          {"0", time.Unix(0, 0).UTC()},
		"last second":    {"253402300799", time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)},
		"too late":       {"253402300800", time.Time{}},
		"negative":       {"-1", time.Time{}},
		"signed":         {"+1", time.Time{}},
		"fraction":       {"1.5", time.Time{}},
		"RFC 3339":       {"2026-01-02T03:04:05Z", at},
		"with offset":    {"2026-01-02T04:04:05+01:00", at},
		"with fraction":  {"2026-01-02T03:04:05.5Z", at.Add(time.Second / 2)},
		"small letters":  {"2026-01-02t03:04:05z", at},
		"small t, zone":  {"2026-01-02t04:04:05+01:00", at},
		"date only":      {"2026-01-02", time.Time{}},
		"without a zone": {"2026-01-02T03:04:05", time.Time{}},
		"word":           {"yesterday", time.Time{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := timeQuery(url.Values{"created_after": {test.text}}, "created_after")
			if refused := test.want.IsZero() && test.text != ""; (err != nil) != refused || !got.Equal(test.want) {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

func TestIsID(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"task_01JZZZZZZZZZZZZZZZZZZZZZZZ":   true,
		"task_7ZZZZZZZZZZZZZZZZZZZZZZZZZ":   true,
		"task_8ZZZZZZZZZZZZZZZZZZZZZZZZZ":   false, // beyond 128 bits
		"task_01JZZZZZZZZZZZZZZZZZZZZZZ":    false,
		"task_01JZZZZZZZZZZZZZZZZZZZZZZZZ":  false,
		"task_01jzzzzzzzzzzzzzzzzzzzzzzz":   false,
		"task_01JZZZZZZZZZZZZZZZZZZZZZZI":   false,
		"task_01JZZZZZZZZZZZZZZZZZZZZZ\x00": false,
		"acc_01JZZZZZZZZZZZZZZZZZZZZZZZ":    false,
		"01JZZZZZZZZZZZZZZZZZZZZZZZ":        false,
		"":                                  false, "task_": false,
	} {
		if got := isID(id, taskPrefix); got != want {
			t.Errorf("%q: %t", id, got)
		}
	}
}
