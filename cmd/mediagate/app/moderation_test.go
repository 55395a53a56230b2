package app

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"
)

func TestModerationSettings(t *testing.T) {
	t.Parallel()
	fine, broken := keyFile(t, "ass\n"), keyFile(t, "ass\n/(/\nb\n")
	for name, c := range map[string]struct {
		change func(m *Moderation)
		want   string // problems, one a line
	}{
		"off":              {func(*Moderation) {}, ""},
		"words":            {func(m *Moderation) { m.Mode, m.Files = "words", []string{fine} }, ""},
		"endpoint":         {func(m *Moderation) { m.Mode, m.URL = "endpoint", "http://10.0.0.1:8000/v1/moderations" }, ""},
		"unknown mode":     {func(m *Moderation) { m.Mode = "strict" }, "moderation.mode: must be off, words or endpoint"},
		"words of nothing": {func(m *Moderation) { m.Mode = "words" }, "moderation.files: must name at least one list: mode is words"},
		"no such list": {
			func(m *Moderation) { m.Mode, m.Files = "words", []string{"/nowhere/words.txt"} },
			"moderation.files: /nowhere/words.txt: no such file or directory",
		},
		"broken lines": {
			func(m *Moderation) { m.Mode, m.Files = "words", []string{fine, broken} },
			"moderation.files: " + broken + ":2: is not a regular expression of RE2\n" +
				"moderation.files: " + broken + ":3: holds one letter only: write it as a pattern, /…/",
		},
		"endpoint nowhere":    {func(m *Moderation) { m.Mode = "endpoint" }, "moderation.url: must be the endpoint's address: mode is endpoint"},
		"another scheme":      {func(m *Moderation) { m.URL = "ftp://example.com" }, "moderation.url: must be an http or https URL"},
		"too patient":         {func(m *Moderation) { m.Timeout = 5 * time.Second }, "moderation.timeout: must be at most 4s"},
		"no time":             {func(m *Moderation) { m.Timeout = 0 }, "moderation.timeout: must be above 0"},
		"neither open nor so": {func(m *Moderation) { m.OnFailure = "ajar" }, "moderation.on_failure: must be closed or open"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := Defaults()
			c.change(&config.Moderation)
			var got []string
			for _, p := range config.problems(true, RoleAll) {
				if strings.HasPrefix(p.path, "moderation") {
					got = append(got, p.Error())
				}
			}
			if strings.Join(got, "\n") != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestModerationListsAreReadAnew checks that changed lists are read again and that broken ones
// change nothing.
func TestModerationListsAreReadAnew(t *testing.T) {
	t.Parallel()
	path := keyFile(t, "ass\n")
	var log strings.Builder
	g := &Gateway{log: slog.New(slog.NewTextHandler(&log, nil)), Config: Defaults()}
	g.Config.Moderation = Moderation{Mode: moderationWords, Files: []string{path}}
	must(t, g.openModeration())
	look := func(text string) {
		t.Helper()
		must(t, os.WriteFile(path, []byte(text), 0o600))
		g.lists.checkFiles(t.Context())
		g.lists.checkFiles(t.Context())
	}
	want := func(text string, refused bool) {
		t.Helper()
		if v, err := g.moderator.Check(t.Context(), []string{text}); err != nil || v.Refused != refused {
			t.Errorf("%s: %+v, %v", text, v, err)
		}
	}
	want("an ass", true)
	look("# nothing else\ndonkey\n")
	want("an ass", false)
	want("a donkey", true)
	look("mule\n/(/\n")
	want("a donkey", true)
	want("a mule", false)
	if err := g.lists.check(t.Context()); err == nil || !strings.Contains(err.Error(), path+":2: ") {
		t.Errorf("the broken list is not told of: %v", err)
	}
	if !strings.Contains(log.String(), path+":2: ") {
		t.Errorf("the log says %s", log.String())
	}
	look("mule\n")
	want("a mule", true)
	if err := g.lists.check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestModerationIsOptional(t *testing.T) {
	t.Parallel()
	g := &Gateway{log: slog.New(slog.DiscardHandler), Config: Defaults()}
	if err := g.openModeration(); err != nil || g.moderator != nil || g.follows() {
		t.Errorf("%v, %v", g.moderator, err)
	}
}
