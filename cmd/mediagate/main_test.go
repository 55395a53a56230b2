package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mediagate/mediagate/cmd/mediagate/operator"
	"github.com/mediagate/mediagate/providers/declared"
)

const good = `
database_url: postgres://gate:hunter2@db/gate
admin_key: 0123456789abcdef0123456789abcdef
encryption_keys: ["MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="]
`

func settings(t *testing.T, text string) []string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "mediagate.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"MEDIAGATE_CONFIG=" + name}
}

// Each case says what standard output and standard error hold; nothing at all
// where it says nothing.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	const help, hint = "Usage: mediagate COMMAND", "`mediagate help` lists"
	for name, test := range map[string]struct {
		args     []string
		settings string
		code     int
		out, err string
	}{
		"nothing":                {nil, good, 2, "", help},
		"help":                   {[]string{"help"}, good, 0, help, ""},
		"-h":                     {[]string{"-h"}, good, 0, help, ""},
		"--help":                 {[]string{"--help"}, good, 0, help, ""},
		"help of a command":      {[]string{"api", "-h"}, "foo: 1", 0, help, ""},
		"help of config":         {[]string{"config", "--help"}, "foo: 1", 0, help, ""},
		"help of version":        {[]string{"version", "-h"}, good, 0, help, ""},
		"unknown command":        {[]string{"serve"}, good, 2, "", `unknown command "serve"`},
		"version":                {[]string{"version"}, "foo: 1", 0, "mediagate dev", ""},
		"version extra":          {[]string{"version", "extra"}, good, 2, "", `mediagate version: unexpected argument "extra"`},
		"api extra":              {[]string{"api", "extra"}, "foo: 1", 2, "", `mediagate api: unexpected argument "extra"`},
		"config extra":           {[]string{"config", "extra"}, good, 2, "", hint},
		"unknown flag":           {[]string{"migrate", "-nope"}, good, 2, "", "-nope"},
		"unknown flag of config": {[]string{"config", "-nope=1"}, good, 2, "", "-nope"},
		"flag without value":     {[]string{"worker", "-currency"}, good, 2, "", "-currency"},
		"config":                 {[]string{"config"}, good, 0, "currency: USD", ""},
		"config's limits":        {[]string{"config"}, good, 0, "# speeches                 2000  account", ""},
		"wrong settings":         {[]string{"config"}, good + "own_domains: ['!!']\ncatalog_dir: /does/not/exist\n", 1, "currency: USD", "mediagate: own_domains[0]: "},
		"wrong settings of all":  {[]string{"all"}, "foo: 1", 1, "", "mediagate: foo: no such setting\nmediagate: database_url: "},
		"operator's help":        {[]string{"keys", "list", "-h"}, "foo: 1", 0, "usage: mediagate keys list", ""},
		"each operator's verb":   {[]string{"help"}, good, 0, "  keys list|create|rotate|revoke\n", ""},
		"the last of them":       {[]string{"help"}, good, 0, "  audit list\n\nEvery setting", ""},
		"replay's help":          {[]string{"replay", "-h"}, "foo: 1", 0, "usage: mediagate replay ID|FILE", ""},
		"replay nothing":         {[]string{"replay"}, "foo: 1", 2, "", "mediagate replay: name a task"},
		"replay, same":           {[]string{"replay", "../../workflows/testdata/histories/video.json"}, "foo: 1", 0, "This build decides as the run did.", ""},
		"replay, wrong settings": {[]string{"replay", "task_1"}, "foo: 1", 1, "", "mediagate: foo: no such setting"},
		"a vendor's examples":    {[]string{"vendors", "test", "../../providers/declared/vendors/vidu.yaml"}, "foo: 1", 0, "vidu.yaml: ok, 4 examples", ""},
		"no vendor's file":       {[]string{"vendors", "test", "nothing.yaml"}, "foo: 1", 1, "", "mediagate: nothing.yaml:1:1: cannot be read"},
		"no name for a vendor":   {[]string{"vendors", "new", "../up"}, good, 2, "", `mediagate vendors: "../up" is no name`},
		"a vendor in Go":         {[]string{"vendors", "new", "kling"}, good, 2, "", "kling is the name of a built-in vendor that a file cannot replace"},
		"a built-in file":        {[]string{"vendors", "show", "vidu"}, "foo: 1", 0, "\nname: vidu\n", ""},
		"no built-in file":       {[]string{"vendors", "show", "kling"}, "foo: 1", 2, "", `no built-in file has the name "kling"; known: fal, minimax, musicapi, sunoapi, vidu`},
		"help of vendors":        {[]string{"vendors", "--help"}, "foo: 1", 0, "usage: mediagate vendors …\n\n  vendors test FILE…", ""},
		"no folder of vendors":   {[]string{"config"}, good + "vendor_dir: /does/not/exist\n", 1, "currency: USD", "mediagate: vendor_dir: open /does/not/exist: no such file"},
		"vendors nothing":        {[]string{"vendors"}, good, 2, "", "mediagate vendors: vendors test FILE…"},
		"unknown command's help": {[]string{"serve"}, good, 2, "", "  accounts list|show|create|grant|suspend|resume|usage|statement\n"},
		"operator's wrong use":   {[]string{"keys"}, good, 2, "", "mediagate keys create"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, err bytes.Buffer
			if code := run(test.args, settings(t, test.settings), &out, &err); code != test.code {
				t.Errorf("exit %d, want %d", code, test.code)
			}
			for _, stream := range []struct{ name, got, want string }{
				{"standard output", out.String(), test.out}, {"standard error", err.String(), test.err},
			} {
				if !strings.Contains(stream.got, stream.want) || (stream.want == "" && stream.got != "") {
					t.Errorf("%s: want %q, got\n%s", stream.name, stream.want, stream.got)
				}
			}
			if strings.Contains(out.String()+err.String(), "hunter2") {
				t.Error("a secret is printed")
			}
		})
	}
}

// TestConfigWarnsOfModelsThatEnd checks that a model that ends is no fault of the settings.
func TestConfigWarnsOfModelsThatEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "alpha.yaml"), []byte("id: alpha-v3\nends: 2026-01-31\nreplacement: beta-q3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errors bytes.Buffer
	code := run([]string{"config"}, settings(t, good+"catalog_dir: "+dir+"\n"), &out, &errors)
	if want := "mediagate: model alpha-v3 ended on 2026-01-31; replacement: beta-q3\n"; code != 0 || errors.String() != want || !strings.Contains(out.String(), "currency: USD") {
		t.Errorf("exit %d, %q, want %q", code, errors.String(), want)
	}
}

// TestOperatorsPageNamesEachCommand checks that the page for operators names each command.
func TestOperatorsPageNamesEachCommand(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "running.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Commands\n")
	first, _, _ := strings.Cut(section, "over the admin API")
	var want []string
	for line := range strings.Lines(operator.Summary()) {
		want = append(want, "`"+strings.TrimSpace(line)+"`")
	}
	if got := strings.TrimSpace(first); !strings.HasPrefix(got, strings.Join(want, ", ")+" (") {
		t.Errorf("it says\n%s\nand there are\n%s", got, strings.Join(want, ", "))
	}
}

// TestVendorsNew checks that a new file is written into the current folder and replaces no file.
func TestVendorsNew(t *testing.T) {
	t.Chdir(t.TempDir())
	for i, want := range []string{"acme.yaml\n", ""} {
		var out, err bytes.Buffer
		if code := run([]string{"vendors", "new", "acme"}, nil, &out, &err); code != i || out.String() != want {
			t.Errorf("exit %d, %q, %q", code, out.String(), err.String())
		}
	}
	var out, err bytes.Buffer
	if code := run([]string{"vendors", "test", "acme.yaml"}, nil, &out, &err); code != 0 {
		t.Errorf("exit %d: %s", code, err.String())
	}
}

// TestConfigTestsVendors checks that the command config checks the files of vendor_dir and runs
// their examples.
func TestConfigTestsVendors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text, err := declared.NewFile("acme")
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "acme.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := filepath.Join(dir, "acme.yaml")
	channel := "vendor_dir: " + dir + "\nchannels: [{name: a, provider: acme, credentials: {api_key: k}}]\n"
	for _, test := range []struct{ text, want string }{
		{text, ""},
		{strings.Replace(text, "seconds: 5}", "seconds: 6}", 1), "mediagate: " + at + ":50:5: examples[0]: calls[0].body: is "},
		{strings.Replace(text, "[prompt, duration]", "[prompt, duration, smell]", 1), "mediagate: " + at + ":14:32: no model has a field smell"},
		{strings.Replace(text, "https://api.vendor.example.com", "https://127.0.0.1", 1), "mediagate: " + at + ":4:11: base_url: plain http and private hosts"},
	} {
		write(test.text)
		var out, err bytes.Buffer
		code := run([]string{"config"}, settings(t, good+channel), &out, &err)
		if (code == 0) != (test.want == "") || !strings.HasPrefix(err.String(), test.want) {
			t.Errorf("exit %d, %q, want %q", code, err.String(), test.want)
		}
		if strings.HasSuffix(out.String(), "\n# vendor acme: ok, examples: 1\n") != (test.want == "") {
			t.Errorf("it ends with\n%s", out.String()[max(0, out.Len()-200):])
		}
	}
	write(strings.Replace(text, "https://api.vendor.example.com", "http://127.0.0.1", 1))
	var out, errors bytes.Buffer
	if code := run([]string{"config"}, settings(t, good+channel+"outbound: {allow: [127.0.0.0/8]}\n"), &out, &errors); code != 0 {
		t.Errorf("an allowed host: exit %d, %s", code, errors.String())
	}
	if err := os.Rename(at, filepath.Join(dir, "kling.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kling.yaml"), []byte(strings.Replace(text, "name: acme", "name: kling", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	errors.Reset()
	if code := run([]string{"config"}, settings(t, good+"vendor_dir: "+dir+"\n"), &out, &errors); code != 1 || !strings.Contains(errors.String(), "kling.yaml:3:7: name: kling is the name of a built-in vendor") {
		t.Errorf("the name of a vendor in Go: exit %d, %s", code, errors.String())
	}
	errors.Reset()
	if code := run([]string{"vendors", "test", filepath.Join(dir, "kling.yaml")}, nil, &out, &errors); code != 1 || !strings.Contains(errors.String(), "kling is the name of a built-in vendor") {
		t.Errorf("its examples: exit %d, %s", code, errors.String())
	}
}
