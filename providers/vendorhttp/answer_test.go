package vendorhttp

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	type shape struct {
		ID   Text     `json:"id"`
		List []string `json:"list"`
		In   struct {
			N Text `json:"n"`
		} `json:"in"`
	}
	for name, tc := range map[string]struct {
		body string
		want shape
		fail bool
	}{
		"text":               {body: `{"id":"a"}`, want: shape{ID: "a"}},
		"number":             {body: `{"id":90071992547409931}`, want: shape{ID: "90071992547409931"}},
		"null":               {body: `{"id":null}`},
		"object":             {body: `{"id":{"a":1}}`},
		"array":              {body: `{"id":["a"]}`},
		"odd field before":   {body: `{"list":"no","in":[],"id":"a"}`, want: shape{ID: "a"}},
		"leading whitespace": {body: " \n{\"id\":\"a\"}\n", want: shape{ID: "a"}},
		"truncated":          {body: `{"id":"a"`, fail: true},
		"array document":     {body: `[{"id":"a"}]`, fail: true},
		"null document":      {body: `null`, fail: true},
		"empty":              {body: ``, fail: true},
		"trailing data":      {body: `{"id":"a"}x`, fail: true},
		"html":               {body: `<html>`, fail: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got shape
			err := Answer{Body: []byte(tc.body)}.Decode(&got)
			if (err != nil) != tc.fail {
				t.Fatalf("Decode: %v", err)
			}
			if d := cmp.Diff(tc.want, got); !tc.fail && d != "" {
				t.Error(d)
			}
		})
	}
}

func TestTextForms(t *testing.T) {
	t.Parallel()
	for text, want := range map[Text]float64{
		"5": 5, "5.1": 5.1, " 10.0 ": 10, "0": 0, "-5": 0, "NaN": 0, "Inf": 0, "1e300": 0, "5s": 0, "": 0, "86400": 86400, "86401": 0,
	} {
		if got := text.Seconds(); got != want {
			t.Errorf("Seconds(%q) = %v, want %v", text, got, want)
		}
	}
	for text, want := range map[Text]string{
		"1.5": "1.5", "7": "7", "-1": "", "1e9": "", "1.2.3": "", "<b>": "", "": "", Text(strings.Repeat("1", 33)): "",
	} {
		if got := text.Decimal(); got != want {
			t.Errorf("Decimal(%q) = %q, want %q", text, got, want)
		}
	}
	for text, want := range map[Text]string{
		"1772366400000": "2026-03-01T12:00:00.000Z", "2026-03-01 12:00:00": "2026-03-01T12:00:00.000Z",
		"2026-03-01T13:00:00.5+01:00": "2026-03-01T12:00:00.500Z", "253402300799999": "9999-12-31T23:59:59.999Z",
		"253402300800000": "", "-1": "", "0": "", "yesterday": "", "": "",
	} {
		if got := text.Moment(); got != want {
			t.Errorf("Moment(%q) = %q, want %q", text, got, want)
		}
	}
	for text, ok := range map[Text]bool{
		"https://cdn.example.com/a.mp4?x=1": true, "http://127.0.0.1:9/a": true, "//cdn.example.com/a": false, "/a": false, "": false,
		"file:///etc/passwd": false, "data:video/mp4;base64,AA": false, "https://": false, "ftp://a.example.com": false,
		Text("https://a.example.com/" + strings.Repeat("x", 8192)): false,
	} {
		if got := text.Link() != ""; got != ok {
			t.Errorf("Link(%q) = %v, want %v", text, got, ok)
		}
	}
	for text, ok := range map[Text]bool{
		"123": true, "a-b_c": true, "": false, "a b": false, "a\n": false, "é": false,
		Text(strings.Repeat("a", 256)): true, Text(strings.Repeat("a", 257)): false,
	} {
		if got := text.ID() != ""; got != ok {
			t.Errorf("ID(%q) = %v, want %v", text, got, ok)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "0": 0, "-1": 0, "soon": 0, "300": 5 * time.Minute, "301": 5 * time.Minute,
		"99999999999999999999":                           0,
		now.Add(9 * time.Second).Format(http.TimeFormat): 9 * time.Second,
		now.Add(-time.Hour).Format(http.TimeFormat):      0,
		now.Add(time.Hour).Format(http.TimeFormat):       5 * time.Minute,
	} {
		got := Answer{Header: http.Header{"Retry-After": {value}}, at: now}.RetryAfter()
		if got != want {
			t.Errorf("RetryAfter(%q) = %v, want %v", value, got, want)
		}
	}
}

// Prose keeps line breaks and letters, and drops control characters.
func TestProse(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]string{
		`"[Verse]\nSnow\u0000 falls\t☃\r\n"`: "[Verse]\nSnow falls\t☃\n",
		`"\u001b[31mred\u007f\u0085"`:        "[31mred",
		`"👩\u200d🎤"`:                         "👩\u200d🎤",
		`["a"]`:                              "",
	} {
		var text Text
		if err := json.Unmarshal([]byte(document), &text); err != nil || text.Prose() != want {
			t.Errorf("%s reads %q (%v), want %q", document, text.Prose(), err, want)
		}
	}
}
