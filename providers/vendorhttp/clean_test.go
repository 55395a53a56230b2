package vendorhttp

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mediagate/mediagate"
)

func TestEnglish(t *testing.T) {
	t.Parallel()
	for text, english := range map[string]bool{
		"": true, "rendering failed": true, "the prompt contains 敏感 words": true, "1300: !": true, "Échec": true,
		"内容违规": false, "生成失败 (code 1300)": false, "生成に失敗しました": false, "생성에 실패했습니다": false,
	} {
		if got := EnglishOrEmpty(text); (got == text) != english || got != "" && got != text {
			t.Errorf("English(%q) = %q", text, got)
		}
	}
}

func TestClean(t *testing.T) {
	t.Parallel()
	c := newCleaner("https://vendor-gw.corp:8443/prefix", []mediagate.Secret{mediagate.NewSecret("AKhHpR8qPz"), mediagate.NewSecret("s3cr3t+/="), mediagate.NewSecret("AKhHpR8qPzLonger")})
	for name, tc := range map[string]struct{ in, want string }{
		"plain":              {"duration must be between 3 and 15", "duration must be between 3 and 15"},
		"chinese":            {"内容违规，请修改后重试", "内容违规，请修改后重试"},
		"field names":        {"input.prompt is too long; parameters.size v2.6 is invalid", "input.prompt is too long; parameters.size v2.6 is invalid"},
		"secret":             {"key AKhHpR8qPz unknown", "key [hidden] unknown"},
		"longer secret":      {"key AKhHpR8qPzLonger unknown", "key [hidden] unknown"},
		"secret in a word":   {"xAKhHpR8qPzy", "x[hidden]y"},
		"escaped secret":     {"q=s3cr3t%2B%2F%3D.", "q=[hidden]."},
		"secret in an URL":   {"see https://a.example.com/?k=AKhHpR8qPz&b=https://x ok", "see [hidden] ok"},
		"own host":           {"vendor-gw.corp:8443 said no, vendor-gw.corp too", "[hidden] said no, [hidden] too"},
		"url":                {"at https://api.example.com/v1?a=b.", "at [hidden]"},
		"url of a bucket":    {"at oss://bucket/key failed", "at [hidden] failed"},
		"host":               {"api-beijing.klingai.com timed out", "[hidden] timed out"},
		"host and port":      {"dial tcp: lookup db.svc:5432", "dial tcp: lookup [hidden]"},
		"localhost":          {"localhost:9900 refused, localhost", "[hidden] refused, [hidden]"},
		"address":            {"dial tcp 10.1.2.3:443: refused", "dial tcp [hidden]: refused"},
		"v6 address":         {"dial tcp [2001:db8::1]:443: refused by ::1", "dial tcp [hidden]: refused by [hidden]"},
		"no address":         {"at 12:30:45 with ratio 16:9", "at 12:30:45 with ratio 16:9"},
		"jwt":                {"token eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJhIn0.c2ln bad", "token [hidden] bad"},
		"bearer":             {"got Authorization: Bearer abc123def", "got Authorization: Bearer [hidden]"},
		"key by name":        {`{"api_key": "qwertyuiop"}`, `{"api_key": "[hidden]"}`},
		"token as a word":    {"the token expired; the token is invalid", "the token expired; the token is invalid"},
		"sk key":             {"Incorrect API key sk-ab12cd34", "Incorrect API key [hidden]"},
		"long id":            {"request 0f3a9e2c-1111-2222-3333-444455556666", "request [hidden]"},
		"control characters": {"a\r\nb\x00c\td\u202ee", "a b c d e"},
		"invalid UTF-8":      {"a\xff\xfeb", "ab"},
		"empty":              {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(tc.want, c.clean(tc.in)); d != "" {
				t.Errorf("clean(%q) (-want +got):\n%s", tc.in, d)
			}
		})
	}
}

func TestCleanCapsLength(t *testing.T) {
	t.Parallel()
	c := newCleaner("", nil)
	for name, tc := range map[string]struct {
		in   string
		want int
	}{
		"at the bound": {strings.Repeat("é ", MaxText/2)[:MaxText/2*3-1], MaxText - 1},
		"over":         {strings.Repeat("word ", 200), MaxText},
		"huge":         {strings.Repeat("漢 ", 1<<19), MaxText},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if n := utf8.RuneCountInString(c.clean(tc.in)); n != tc.want {
				t.Errorf("%d characters, want %d", n, tc.want)
			}
		})
	}
}

// A secret never survives, whatever surrounds it. The text stays within its limit and on one line.
func TestCleanNeverLeaks(t *testing.T) {
	t.Parallel()
	const secret = "Zq8#s3cret/Key=="
	c := newCleaner("https://vendor-gw.example.com", []mediagate.Secret{mediagate.NewSecret(secret)})
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
			secret, "https://", "vendor-gw.example.com", "Bearer ", "\xff", "\n", "token=", strings.Repeat("x", 5000),
		}))
		text := strings.Join(rapid.SliceOf(part).Draw(t, "parts"), "")
		got := c.clean(text)
		if strings.Contains(got, secret) || strings.Contains(got, "vendor-gw.example.com") {
			t.Fatalf("leaks: %q", got)
		}
		if n := utf8.RuneCountInString(got); n > MaxText || !utf8.ValidString(got) || strings.ContainsAny(got, "\r\n\x00") {
			t.Fatalf("%d characters: %q", n, got)
		}
	})
}

// Fetched secrets are hidden like those of the channel, and the latest are remembered.
func TestHide(t *testing.T) {
	t.Parallel()
	c := open(t, "https://api.vendor.example", Options{})
	for i := range maxFetched {
		c.Hide(mediagate.NewSecret("swordfish" + strings.Repeat("x", i)))
		c.Hide(mediagate.NewSecret("swordfish")) // a token that is used again
	}
	if got, want := c.Clean("no swordfish, no sk-secret-1"), "no [hidden], no [hidden]"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	c.Hide(mediagate.NewSecret("marlin"))
	if got, want := c.Clean("no swordfish, no marlin"), "no swordfish, no [hidden]"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if len(c.fetched) != maxFetched {
		t.Errorf("%d secrets are remembered, want %d", len(c.fetched), maxFetched)
	}
}
