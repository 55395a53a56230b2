package app

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/internal/failpoint"
)

// TestWarnsOfPlainHTTP checks the warning about plain http to another machine. It names the
// channel, since the address may hold credentials.
func TestWarnsOfPlainHTTP(t *testing.T) {
	t.Parallel()
	var want, got []string
	var channels []Channel
	for base, warned := range map[string]bool{
		"": false, "https://api.example.com": false, "http://127.0.0.1:9900/kling": false, "http://[::1]:9900": false,
		"http://[::ffff:127.0.0.1]": false, "http://LOCALHOST:1/v1": false, "http://sandbox.localhost": false,
		"http://api.example.com": true, "HTTP://api.example.com": true, "http://10.0.0.1": true, "http://localhost.example.com": true,
		"http://user:password@vendor": true,
	} {
		channels = append(channels, Channel{Name: "of " + base, BaseURL: base})
		if warned {
			want = append(want, "of "+base)
		}
	}
	for _, c := range channels {
		got = append(got, unencrypted([]Channel{c})...)
	}
	if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var log bytes.Buffer
	g := &Gateway{log: slog.New(slog.NewTextHandler(&log, nil)), Config: Config{Channels: []Channel{{Name: "a", BaseURL: "http://user:password@vendor"}}}}
	g.warnOfRisks(t.Context(), "")
	if text := log.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "channel=a") || strings.Contains(text, "password") {
		t.Errorf("%s", text)
	}
}

// TestWarnsOfAnAPIKeyInTheClear checks the warning about an API key sent to another machine
// without TLS. It has only the key's name.
func TestWarnsOfAnAPIKeyInTheClear(t *testing.T) {
	t.Parallel()
	const key = "key-of-the-cloud"
	for name, c := range map[string]struct {
		temporal Temporal
		warned   bool
	}{
		"in the clear":        {Temporal{Address: "temporal.example.com:7233", APIKey: key, TLS: TemporalTLS{Mode: tlsOff}}, true},
		"over TLS":            {Temporal{Address: "temporal.example.com:7233", APIKey: key, TLS: TemporalTLS{Mode: tlsAuto}}, false},
		"without one":         {Temporal{Address: "temporal.example.com:7233", TLS: TemporalTLS{Mode: tlsOff}}, false},
		"to the same machine": {Temporal{Address: "127.0.0.1:7233", APIKey: key, TLS: TemporalTLS{Mode: tlsOff}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			g := &Gateway{log: slog.New(slog.NewTextHandler(&log, nil)), Config: Config{Temporal: c.temporal}}
			g.warnOfRisks(t.Context(), "")
			if text := log.String(); strings.Contains(text, "temporal.api_key") != c.warned || strings.Contains(text, key) {
				t.Errorf("warned of, want %v: %s", c.warned, text)
			}
		})
	}
}

func TestWarnsOfFailpoints(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	g := &Gateway{log: slog.New(slog.NewTextHandler(&log, nil))}
	g.warnOfRisks(t.Context(), failpoint.SpeechSent)
	if text := log.String(); !strings.Contains(text, "level=WARN") || !strings.Contains(text, "failpoint="+failpoint.SpeechSent) {
		t.Errorf("%s", text)
	}
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// TestWarnsOfModelsThatEnd checks the warning from thirty days before the last day of a model.
func TestWarnsOfModelsThatEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "zeta.yaml"), []byte("id: zeta-3.1-flash-image-preview\nends: 2027-03-31\n"), 0o600))
	for now, want := range map[string][]string{
		"2027-02-28T23:59:59Z": nil,
		"2027-03-01T00:00:00Z": {"model zeta-3.1-flash-image-preview ends on 2027-03-31"}, // and not its alias
		"2027-03-31T23:59:59Z": {"model zeta-3.1-flash-image-preview ends on 2027-03-31"},
		"2027-04-01T00:00:00Z": {"model zeta-3.1-flash-image-preview ended on 2027-03-31"},
	} {
		at, err := time.Parse(time.RFC3339, now)
		must(t, err)
		if got := (Config{CatalogDir: dir}).Ending(at); !slices.Equal(got, want) {
			t.Errorf("at %s: %q, want %q", now, got, want)
		}
	}
}

// TestUnboundedChannels checks the warnings about a channel without concurrency whose vendor
// cannot stop a job, since cancelled jobs cost us, and about a channel without an account, whose
// renewed key looks like another account.
func TestUnboundedChannels(t *testing.T) {
	t.Parallel()
	c := Config{Channels: []Channel{
		{Name: "a", Provider: "kling"},
		{Name: "b", Provider: "kling", Concurrency: 5, Account: "b"},
		{Name: "c", Provider: "openai", Account: "c"},
		{Name: "d", Provider: "vidu", Account: "d", Models: []string{"beta-q3", "beta-9"}},
		{Name: "e", Provider: "nobody", Account: "e"},
	}}
	if got := c.Unbounded(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("unbounded: %v", got)
	}
	if text := c.Cautions(); strings.Count(text, "\n") != 3 || !strings.HasPrefix(text, "# channel a has no concurrency") || !strings.Contains(text, "\n# channel a has no account") ||
		!strings.HasSuffix(text, "\n# channel d names a model that there is not: beta-9\n") {
		t.Errorf("doubts:\n%s", text)
	}
}
