package declared_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/providers/declared"
)

// plain returns a file without faults, for a vendor named v.
func plain(t *testing.T) string {
	t.Helper()
	text, err := declared.NewFile("v")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// faults reads a file and returns its faults.
func faults(text string) []string {
	_, err := declared.Read("v.yaml", []byte(text), nil)
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}

// The file that `vendors new` writes has no faults, and its example passes.
func TestNewFile(t *testing.T) {
	t.Parallel()
	v, err := declared.Read("v.yaml", []byte(plain(t)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Test(t.Context()); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"", "V", "1a", "a/b", "..", "a b", strings.Repeat("a", 42)} {
		if _, err := declared.NewFile(name); err == nil {
			t.Errorf("NewFile accepts the name %q", name)
		}
	}
}

// Read reports all faults of a file at once, each with its position.
func TestFaultsTogether(t *testing.T) {
	t.Parallel()
	got := faults(`name: V
base_url: http://127.0.0.1:80/a
color: red
credentials: {api_key: Bearer}
operations:
  video:
    media: film
    fields: [prompt, prompt]
    idle: [seed]
    limits: {size: {max_length: many}}
    callback: true
    submit:
      path: jobs/../{$job
      body: "{text: env, more: [inputs]}"
      id: |
        .id |
        .{
    poll:
      path: /jobs/{$job | nothing}
      status: .status
      words: {queued: [new], running: [new], done: ok}
    result:
      files: now
      charge: .cost
  image:
    media: image
    fields: [prompt]
    submit: {path: /, body: '{a: .promt, b: .promt}', id: .id}
    poll: {path: /, status: .status, words: {done: ok}}
    result: {files: .files, charge: .cost, unit: .cost.unit}
errors:
  kinds: [{kind: broke}, {status: 42, kind: funds}, {code: a, kind: funds, wait: 1s}]
examples:
  - {operation: film, request: {}, calls: [], task: {}}
  - {operation: image, find: true, request: {}, calls: [], task: {}}
  - {operation: image, cancel: true, request: {}, calls: [], task: {}}
`)
	want := []string{
		`v.yaml:1:7: name: "V" must be a letter from a to z, then letters, digits and -, 41 at most`,
		`v.yaml:2:11: base_url: plain http and private hosts are possible only where outbound.allow has the host`,
		`v.yaml:3:1: color: is unknown; known: name, base_url, credentials, options, operations, errors, examples`,
		`v.yaml:4:24: credentials.api_key: must be the header that carries it, with {} in its place, such as "Authorization: Bearer {}"`,
		`v.yaml:6:3: operations.video: no example tries it`,
		`v.yaml:7:12: operations.video.media: "film" is unknown; known: video, image, audio`,
		`v.yaml:8:22: operations.video.fields[1]: prompt is there twice`,
		`v.yaml:9:5: operations.video.idle: the operation takes no field seed`,
		`v.yaml:10:14: operations.video.limits.size: the operation takes no field of that name`,
		`v.yaml:10:33: operations.video.limits.size.max_length: must be a whole number`,
		`v.yaml:13:13: operations.video.submit.path: must be a path that begins with /, without .., with expressions in braces`,
		`v.yaml:14:13: operations.video.submit.body: env is not possible here; inputs is not possible here`,
		`v.yaml:17:11: operations.video.submit.id: unexpected token "{"`,
		`v.yaml:19:13: operations.video.poll.path: {$job | nothing}: function not defined: nothing/0`,
		`v.yaml:21:30: operations.video.poll.words.running: the word "new" is there twice`,
		`v.yaml:22:5: operations.video.result: charge and unit go together`,
		`v.yaml:23:14: operations.video.result.files: now is not possible here`,
		`v.yaml:28:29: operations.image.submit.body: the operation takes no field promt`,
		`v.yaml:30:50: operations.image.result.unit: ".cost.unit" is no unit: a letter, then letters, digits, spaces, _ and -, 32 at most`,
		`v.yaml:32:12: errors.kinds[0]: needs a code, a status or an expression in when`,
		`v.yaml:32:18: errors.kinds[0].kind: "broke" is unknown; known: capacity, credentials, forbidden, funds, invalid, moderated, no_job, no_model, throttled, unknown`,
		`v.yaml:32:35: errors.kinds[1].status: "42" is no HTTP status`,
		`v.yaml:32:82: errors.kinds[2].wait: is for the kinds throttled and capacity only`,
		`v.yaml:34:17: examples[0].operation: there is no operation film`,
		`v.yaml:35:30: examples[1].find: operation image has no find`,
		`v.yaml:36:32: examples[2].cancel: operation image has no cancel`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

// Read refuses what a hostile file may try.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	body := func(expression string) func(string) string {
		return func(text string) string {
			return strings.Replace(text, `body: "{$model, prompt, seconds: .duration}"`, "body: '"+expression+"'", 1)
		}
	}
	replace := func(old, text string) func(string) string {
		return func(file string) string { return strings.Replace(file, old, text, 1) }
	}
	const base = "base_url: https://api.vendor.example.com/v1"
	for name, tt := range map[string]struct {
		edit func(string) string
		want string
	}{
		"environment":                {body("{a: env.PATH}"), "env is not possible here"},
		"environment as a variable":  {body("{a: $ENV.PATH}"), "$ENV is not possible here"},
		"another's environment":      {body("(def env: 1; .) | {a: env}"), "env is not the file's to define"},
		"input":                      {body("{a: [inputs]}"), "inputs is not possible here"},
		"clock":                      {body("{a: now}"), "now is not possible here"},
		"import":                     {body(`import "a" as a; {}`), "import is not possible here"},
		"debug":                      {body("{a: debug}"), "debug is not possible here"},
		"halt":                       {body("halt_error"), "halt_error is not possible here"},
		"an index of half a billion": {body(".duration[500000000] = 1"), "an assignment is to members by their names"},
		"a path to it":               {body("setpath([500000000]; 1)"), "setpath is not possible here"},
		"an update of many":          {body(".duration += 1"), "with = or |="},
		"a pattern that repeats":     {body(`.prompt | test("(a{300}){3}")`), "it repeats too much"},
		"a pattern of a request":     {body(".prompt | test(.prompt)"), "texts in quotes"},
		"flags of a request":         {body(`.prompt | test("a"; .prompt)`), "texts in quotes"},
		"a pattern that is none":     {body(`.prompt | gsub("("; "")`), "texts in quotes"},
		"a width":                    {body(`0 | strftime("%999999999Y")`), "without digits"},
		"a function of jq":           {body("(def keys: 1; .) | keys"), "keys is not the file's to define"},
		"a loop in one step":         {body("jn(2000000000; 1e9)"), "jn is not possible here"},
		"an inner function":          {body(`{a: _multiply("x"; 1e9)}`), "_multiply is no function"},
		"a check undone":             {body("def _fits($x): .; {}"), "names that begin with _"},
		"the room":                   {body("1e9 as $__room | {}"), "names that begin with _"},
		"a long expression":          {body("{a: " + strings.Repeat("1+", 40_000) + "1}"), "longer than 65536 bytes"},
		"a path that leads up":       {replace("path: /jobs\n", "path: /jobs/../admin\n"), "must be a path"},
		"a path to another host":     {replace("path: /jobs\n", "path: //evil.example.com/jobs\n"), "must be a path"},
		"loopback":                   {replace(base, "base_url: https://127.0.0.1/v1"), "private hosts"},
		"loopback by name":           {replace(base, "base_url: https://localhost/v1"), "private hosts"},
		"loopback as a number":       {replace(base, "base_url: https://0x7f.1/v1"), "private hosts"},
		"metadata service":           {replace(base, "base_url: https://169.254.169.254/v1"), "private hosts"},
		"a private network":          {replace(base, "base_url: https://[fd00::1]/v1"), "private hosts"},
		"plain http":                 {replace("https://api", "http://api"), "plain http"},
		"user information":           {replace("https://api", "https://me:pass@api"), "without user, query or .."},
		"a query":                    {replace(".com/v1", ".com/v1?a=b"), "without user, query or .."},
		"up from the base":           {replace(".com/v1", ".com/v1/../v2"), "without user, query or .."},
		"a header of two lines":      {replace("Bearer {}", `Bearer {}\r\nX-Evil: 1`), "must be the header"},
		"an expression unquoted":     {replace("files: .videos[] | {url, type}", "files: .videos[] | {url: .href}"), "put an expression with a colon and a space in single quotes"},
		"an alias":                   {func(text string) string { return text + "options: &a [b]\n" }, "aliases, anchors and tags"},
		"a key twice":                {func(text string) string { return text + "name: w\n" }, "name: is given twice"},
		"brackets":                   {func(string) string { return strings.Repeat("[", 500_000) }, "nested too deep"},
		"dashes":                     {func(string) string { return strings.Repeat("- ", 300_000) }, "nested too deep"},
		"two documents":              {func(text string) string { return text + "---\nname: w\n" }, "one YAML document"},
		"nothing":                    {func(string) string { return "" }, "one YAML document"},
		"another encoding":           {func(text string) string { return text + "# \xff\n" }, "not in UTF-8"},
		"too long":                   {func(text string) string { return text + strings.Repeat("# a\n", 300_000) }, "longer than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(faults(tt.edit(plain(t))), "\n")
			if !strings.HasPrefix(got, "v.yaml:") || !strings.Contains(got, tt.want) {
				t.Errorf("faults %.500q, want %q", got, tt.want)
			}
		})
	}
}

// A field that the operation lacks is refused in every place that certainly reads the request.
func TestMistypedFields(t *testing.T) {
	t.Parallel()
	for expression, refused := range map[string]bool{
		"{promt}":                                true,
		"{$model, a: .promt}":                    true,
		`{a: .["promt"]}`:                        true,
		`{"promt"}`:                              true,
		`{a: "\(.promt)"}`:                       true,
		"{a: (if .promt then 1 else 2 end)}":     true,
		".prompt as $p | {$p, a: [.promt?]}":     true,
		". | {a: (.prompt // .promt)}":           true,
		"{a: ([1, 2] | .[0:.promt])}":            false,
		"{a: -.promt}":                           true,
		"{a: (.prompt | {promt})}":               false,
		"{a: [$options | .promt]}":               false,
		"{a: (.prompt | try .promt catch null)}": false,
		"def f: .promt; {a: ($options | f)}":     false,
		"$options.promt":                         false,
	} {
		t.Run(expression, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(plain(t), `body: "{$model, prompt, seconds: .duration}"`, "body: '"+expression+"'", 1)
			got := strings.Join(faults(text), "\n")
			const want = "operations.video.submit.body: the operation takes no field promt"
			if refused != strings.HasSuffix(got, want) || !refused && got != "" {
				t.Errorf("faults %q", got)
			}
		})
	}
}

// A private host is possible if the settings allow it.
func TestAllowedHost(t *testing.T) {
	t.Parallel()
	text := strings.Replace(plain(t), "https://api.vendor.example.com", "http://10.1.2.3:8080", 1)
	if _, err := declared.Read("v.yaml", []byte(text), func(host string) bool { return host == "10.1.2.3" }); err != nil {
		t.Error(err)
	}
}

// ReadDir reads the files that end in .yaml, and follows links. It reports all faults of all files.
func TestReadDir(t *testing.T) {
	t.Parallel()
	dir, elsewhere := t.TempDir(), t.TempDir()
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(elsewhere, "1"), plain(t))
	if err := os.Symlink(filepath.Join(elsewhere, "1"), filepath.Join(dir, "v.yaml")); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(dir, "notes.txt"), "{")
	list, err := declared.ReadDir(dir, nil)
	if err != nil || len(list) != 1 || list[0].Name != "v" {
		t.Fatalf("%v, %v", list, err)
	}
	write(filepath.Join(dir, "a.yaml"), "name: a\n")
	write(filepath.Join(dir, "w.yaml"), plain(t))
	if err := os.Mkdir(filepath.Join(dir, "x.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "y.yaml")); err != nil {
		t.Fatal(err)
	}
	list, err = declared.ReadDir(dir, nil)
	got := fmt.Sprint(err)
	for _, want := range []string{
		"a.yaml:1:1: base_url is missing", "a.yaml:1:1: examples is missing", "w.yaml:3:7: name: the file of v must be named v.yaml",
		"x.yaml:1:1: is no file", "y.yaml:1:1: cannot be read",
	} {
		if !strings.Contains(got, filepath.Join(dir, want)) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	if len(list) != 1 || list[0].Name != "v" {
		t.Errorf("%d vendors", len(list))
	}
	if _, err := declared.ReadDir(filepath.Join(dir, "none"), nil); err == nil {
		t.Error("a missing folder is no error")
	}
}
