package app_test

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/cmd/mediagate/app"
	"github.com/mediagate/mediagate/providers/all"
)

const whole = `
database_url: postgres://gate:hunter2@db.example.com/gate
database_pool: {size: 20, max_age: 10m}
database_pooler: transaction
temporal: {address: temporal.example.com:7233, namespace: media}
s3:
  endpoint: https://s3.example.com
  region: eu-central-1
  bucket: results
  access_key_id: 12345
  secret_access_key: very-secret
  path_style: true
api_listen: :8081
ops_listen: :9091
admin_key: 0123456789abcdef0123456789abcdef
encryption_keys: ["MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="]
retention: {tasks: 10d, results: 5d, deliveries: 36h}
shutdown_grace: 90s
public_url: https://api.example.com
own_domains: [example.net, 203.0.113.0/24]
outbound: {allow: [10.1.0.0/16], webhook_timeout: 5s}
channels:
  - name: kling-a
    provider: kling
    credentials: {access_key: ak, secret_key: "00000000000000000000000000000000"}
    models: [alpha-v3]
    priority: 2
    poll_interval: {min: 3s, max: 9s}
    account: acme-main
    former: [kling-old, 0123]
groups:
  default: {price_factor: "1", models: ["*"], capacity: 0}
  gold: {price_factor: 0.8, models: ["alpha-*"]}
`

// must ends the test with an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "mediagate.yaml")
	must(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func load(t *testing.T, text string, env, args []string) (app.Config, error) {
	t.Helper()
	src := app.Sources{Base: app.Defaults(), Env: env, Args: args}
	if text != "" {
		src.File = file(t, text)
	}
	return app.Load(src)
}

func TestLoadReadsEverySetting(t *testing.T) {
	t.Parallel()
	c, err := load(t, whole, nil, nil)
	must(t, err)
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if c.S3.AccessKeyID != "12345" || c.Retention.Tasks != 240*time.Hour || c.Retention.Deliveries != 36*time.Hour {
		t.Errorf("s3 %+v, retention %+v", c.S3, c.Retention)
	}
	if c.Groups["gold"].PriceFactor != "0.8" {
		t.Errorf("a factor without quotes is read as %q", c.Groups["gold"].PriceFactor)
	}
	want := app.Channel{
		Name: "kling-a", Provider: "kling", Models: []string{"alpha-v3"}, Priority: 2, Weight: 1, RequestsPerSecond: 10,
		Credentials:  map[string]string{"access_key": "ak", "secret_key": "00000000000000000000000000000000"},
		PollInterval: app.PollInterval{Min: 3 * time.Second, Max: 9 * time.Second},
		Account:      "acme-main", Former: []string{"kling-old", "0123"},
	}
	if diff := cmp.Diff([]app.Channel{want}, c.Channels); diff != "" {
		t.Error(diff)
	}
	if want := (app.DatabasePool{Size: 20, MaxAge: 10 * time.Minute}); c.DatabasePool != want {
		t.Errorf("the pool is %+v, want %+v", c.DatabasePool, want)
	}
	if c.DatabasePooler != "transaction" {
		t.Errorf("the pooler is %q", c.DatabasePooler)
	}
	if c.TaskTimeout != 2*time.Hour || c.CreditsPerUnit != 1000 || c.ParkTimeout != 24*time.Hour {
		t.Error("what is not said does not keep its default")
	}
}

func TestLoadLayers(t *testing.T) {
	t.Parallel()
	env := []string{
		"MEDIAGATE_API_LISTEN=:8082", "MEDIAGATE_S3_BUCKET=from-env", "MEDIAGATE_TASK_TIMEOUT=1h",
		"MEDIAGATE_OUTBOUND_ALLOW=127.0.0.0/8, 10.0.0.0/8", "MEDIAGATE_S3_PATH_STYLE=false", "MEDIAGATE_TRUSTED_PROXIES=2",
		"MEDIAGATE_CHANNELS=[{name: x, provider: dashscope, credentials: {api_key: sk-0000000000000000}}]",
		"MEDIAGATE_FAILPOINT=mirrored", "MEDIAGATE_TEST_POSTGRES=x", "OTHER=1", "MEDIAGATE_DATABASE_POOL_SIZE=30",
	}
	c, err := load(t, whole, env, []string{"-s3-bucket", "from-flag", "--log-level=debug", "-database-pool-max-age", "2h"})
	must(t, err)
	if c.APIListen != ":8082" || c.S3.Bucket != "from-flag" || c.LogLevel != "debug" || c.OpsListen != ":9091" ||
		c.S3.PathStyle || c.TrustedProxies.Hops != 2 || c.TaskTimeout != time.Hour ||
		c.DatabasePool != (app.DatabasePool{Size: 30, MaxAge: 2 * time.Hour}) {
		t.Errorf("layers are not obeyed: %+v", c)
	}
	if diff := cmp.Diff([]string{"127.0.0.0/8", "10.0.0.0/8"}, c.Outbound.Allow); diff != "" {
		t.Error(diff)
	}
	if len(c.Channels) != 1 || c.Channels[0].Name != "x" {
		t.Errorf("channels are not replaced as a whole: %+v", c.Channels)
	}
}

// TestLoadTakesVariablesOfTheDocuments checks that a process starts with every variable of the
// documents in its environment, since people export those of clients in the same shell.
func TestLoadTakesVariablesOfTheDocuments(t *testing.T) {
	t.Parallel()
	var env []string
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && d.Name() != "..") {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".md" && d.Name() != "docker-compose.yml" {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, name := range regexp.MustCompile(`MEDIAGATE_[A-Z0-9_]+`).FindAllString(string(text), -1) {
			if !strings.HasSuffix(name, "_") { // else there are several
				env = append(env, name+"=")
			}
		}
		return err
	})
	if err != nil || !slices.Contains(env, "MEDIAGATE_API_KEY=") {
		t.Fatalf("the documents name %q, %v", env, err)
	}
	slices.Sort(env)
	_, err = load(t, complete, slices.Compact(env), nil)
	for _, line := range lines(err) { // that an empty text is no setting is another matter
		if strings.Contains(line, "no such setting") {
			t.Error(line)
		}
	}
}

// complete is what a file must say at least.
const complete = `
database_url: postgres://gate@db/gate
admin_key: 0123456789abcdef0123456789abcdef
encryption_keys: ["MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="]
`

// lines are the problems of an error.
func lines(err error) []string {
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}

func TestLoadNamesEveryProblem(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	for name, test := range map[string]struct {
		text string // after complete, unless bare
		bare bool
		env  []string
		args []string
		want []string
	}{
		"none": {},
		"unknown keys, with their paths": {
			text: "foo: 1\ntemporal: {addresses: x}\nretention:\n  task: 1d\n" +
				"channels: [{name: a, provider: dashscope, credentials: {api_key: sk-0000000000000000}, x: 1, poll_interval: {mn: 1s}}]\n" +
				"groups: {default: {modles: [a]}, a b: {y: 1}}\n",
			want: []string{
				"foo: no such setting", "temporal.addresses: no such setting", "retention.task: no such setting",
				"channels[0].x: no such setting", "channels[0].poll_interval.mn: no such setting",
				"groups.default.modles: no such setting", `groups."a b".y: no such setting`,
			},
		},
		"wrong types": {
			text: "trusted_proxies: many\nshutdown_grace: soon\nretention: {tasks: 5}\nown_domains: 7\ntemporal: here\n" +
				"currency: {x: y}\nlog_level: true\ns3: {path_style: 1}\ncredits_per_unit: [10]\noutbound: {allow: [[x]]}\n",
			want: []string{
				`trusted_proxies: must be a whole number or a list of CIDRs, not "many"`,
				`shutdown_grace: must be a duration like 10s, 2h or 30d, not "soon"`,
				`retention.tasks: must be a duration like 10s, 2h or 30d, not "5"`,
				"own_domains: must be a list",
				"temporal: must be a mapping, name: value",
				"currency: must be a text",
				"log_level: must be a text: put it in quotes",
				"s3.path_style: must be true or false",
				"credits_per_unit: must be a whole number",
				"outbound.allow[0]: must be a text",
			},
		},
		"integers are not rounded": {
			text: "credits_per_unit: 1000.9\ntrusted_proxies: 1e1\n" +
				"channels: [{name: a, provider: dashscope, credentials: {api_key: k}, weight: 1.5, priority: 010, requests_per_second: .inf}]\n",
			want: []string{
				`credits_per_unit: must be a whole number, not "1000.9"`, `trusted_proxies: must be a whole number or a list of CIDRs, not "1e1"`,
				`channels[0].weight: must be a whole number, not "1.5"`,
				`channels[0].priority: must be written without leading zeros, not "010"`,
				`channels[0].requests_per_second: must be a number, not ".inf"`,
			},
		},
		"integers beyond 64 bits": {
			text: "credits_per_unit: 9223372036854775808\ntrusted_proxies: 18446744073709551616\n",
			want: []string{
				`credits_per_unit: is too far from 0, not "9223372036854775808"`,
				`trusted_proxies: is too far from 0, not "18446744073709551616"`,
			},
		},
		"all layers and all checks at once": {
			bare: true,
			text: "foo: 1\ncredits_per_unit: x\ncurrency: ''\nadmin_key_file: " + missing + "\nown_domains: [example.com, '!!']\n" +
				"catalog_dir: " + missing + "\noutbound: {webhook_timeout: 31s}\nencryption_keys: [short]\n",
			env:  []string{"MEDIAGATE_DATABSE_URL=x", "MEDIAGATE_TRUSTED_PROXIES=1.5", "MEDIAGATE_CHANNELS=[{x: 1"},
			args: []string{"-task-timeout", "soon", "-api-listen", "here"},
			want: []string{
				"foo: no such setting",
				`credits_per_unit: must be a whole number, not "x"`,
				"MEDIAGATE_DATABSE_URL: no such setting",
				`trusted_proxies: must be a whole number or a list of CIDRs, not "1.5" (MEDIAGATE_TRUSTED_PROXIES)`,
				"channels: is not readable as YAML: [1:2] could not find flow mapping end token '}' (MEDIAGATE_CHANNELS)",
				`task_timeout: must be a duration like 10s, 2h or 30d, not "soon" (-task-timeout)`,
				"admin_key_file: open " + missing + ": no such file or directory",
				"database_url: must be a postgres:// URL",
				`api_listen: "here" is not host:port`,
				"encryption_keys[0]: must be base64 of 32 bytes",
				`own_domains[1]: "!!" is neither a domain nor an address range`,
				"currency: must not be empty",
				"catalog_dir: open " + missing + ": no such file or directory",
				"outbound.webhook_timeout: must be at most 30s",
			},
		},
		"kept for a moment":           {text: "retention: {tasks: 59m, results: 59m, deliveries: -1h}\n", want: []string{"retention.tasks: must be at least 1h0m0s, or 0 for ever", "retention.results: must be at least 1h0m0s, or 0 for ever", "retention.deliveries: must be at least 1h0m0s, or 0 for ever"}},
		"files outlive the task":      {text: "retention: {tasks: 20d, results: 21d}\n", want: []string{"retention.results: must be at most retention.tasks: files are found by their task"}},
		"files for ever alone":        {text: "retention: {results: 0}\n", want: []string{"retention.results: must be at most retention.tasks: files are found by their task"}},
		"links that live too shortly": {text: "link_ttl: 59s\n", want: []string{"link_ttl: must be between 1m0s and 168h0m0s"}},
		"links that live too long":    {text: "link_ttl: 169h\n", want: []string{"link_ttl: must be between 1m0s and 168h0m0s"}},
		"a wrong value is reported once": {
			bare: true,
			text: "database_url: [x]\nadmin_key: {}\nencryption_keys: 7\ngroups: {default: 5}\ns3: {access_key_id: [x], secret_access_key: y}\n" +
				"channels: [{name: [a], provider: kling, credentials: {api_key: [x]}, poll_interval: {min: 1}, base_url: []}]\n",
			want: []string{
				"database_url: must be a text", "admin_key: must be a text", "encryption_keys: must be a list",
				"groups.default: must be a mapping, name: value", "s3.access_key_id: must be a text",
				"s3.secret_access_key: goes with access_key_id: set both or neither",
				"channels[0].name: must be a text", "channels[0].credentials.api_key: must be a text",
				`channels[0].poll_interval.min: must be a duration like 10s, 2h or 30d, not "1"`,
				"channels[0].base_url: must be a text",
			},
		},
		"a wrong value under a right one is not in force": {
			text: "api_listen: []\nchannels: 7\n",
			env: []string{
				"MEDIAGATE_API_LISTEN=here",
				"MEDIAGATE_CHANNELS=[{name: a, provider: dashscope, credentials: {api_key: k}, weight: -1}]",
			},
			want: []string{
				`api_listen: "here" is not host:port`, "channels[0].weight: must be above 0",
			},
		},
		"a wrong value around a right one": {
			text: "temporal: here\ns3:\n", env: []string{"MEDIAGATE_TEMPORAL_ADDRESS=temporal:7233", "MEDIAGATE_S3_BUCKET=results"},
			want: []string{"temporal: must be a mapping, name: value"},
		},
		"credentials of channels that are not understood": {
			text: "channels: [{name: [a], provider: kling}]\nchannel_credentials: {a: {access_key: k, secret_key: s}}\n",
			want: []string{"channels[0].name: must be a text"},
		},
		"a zero is not the same as left out": {
			text: "channels:\n" +
				"  - {name: a, provider: dashscope, credentials: {api_key: k}, weight: 0, requests_per_second: 0, poll_interval: {min: 0s}}\n" +
				"  - {name: b, provider: dashscope, credentials: {api_key: k}, weight:, poll_interval: {}}\n",
			want: []string{
				"channels[0].weight: must be above 0", "channels[0].requests_per_second: must be above 0",
				"channels[0].poll_interval: needs 0 < min <= max",
			},
		},
		"without the file nothing is judged": {
			bare: true, args: []string{"-config", missing, "-s3-secret-access-key", "x", "-task-timeout", "soon"},
			env: []string{"MEDIAGATE_CURRENCY=", "MEDIAGATE_FOO=1"},
			want: []string{
				"config: open " + missing + ": no such file or directory", "MEDIAGATE_FOO: no such setting",
				`task_timeout: must be a duration like 10s, 2h or 30d, not "soon" (-task-timeout)`,
			},
		},
		"channels": {
			text: "channels:\n" +
				"  - {name: a, provider: kling, base_url: 'https://2130706433', options: {a: b}}\n" +
				"  - {name: b, provider: dashscope, base_url: 'https://me:pass@example.com', credentials: {api_key: k}}\n" +
				"  - {name: c, provider: nobody, base_url: 'ftp://example.com'}\n",
			want: []string{
				"channels[0].base_url: the host is a number, not a name or an address",
				"channels[0].options.a: is unknown",
				"channels[0].credentials.access_key: is missing", "channels[0].credentials.secret_key: is missing",
				"channels[1].base_url: the URL carries user information",
				"channels[2].base_url: must be an http or https URL",
				`channels[2].provider: "nobody" is unknown; known: ` + strings.Join(all.Builtin().Names(), ", "),
			},
		},
		"parts that an address does not have": {
			text: "s3: {endpoint: 'https://s3.example.com/store?x=1', public_endpoint: 'https://media.example.com/files?x=1#y'}\n" +
				"public_url: https://api.example.com/v1?\ntemporal: {address: 'temporal:7233/media'}\n" +
				"moderation: {url: 'https://m.example.com/v1/moderations?api-version=1#x'}\nops_listen: 127.0.0.1:9090/metrics\n" +
				"cors_origins: ['*', 'null', 'https://App.example.com', 'capacitor://localhost', 'http://localhost:3000', 'https://a.example.com/', app.example.com, 'https://a.example.com?x', 'https://a.example.com:443']\n" +
				"channels:\n" +
				"  - {name: a, provider: dashscope, base_url: 'https://example.com/api/v1?region=cn', credentials: {api_key: k}}\n" +
				"  - {name: b, provider: dashscope, base_url: 'https://example.com/api#/v1', credentials: {api_key: k}}\n",
			want: []string{
				`temporal.address: "temporal:7233/media" is not host:port`,
				"s3.endpoint: must have no query",
				"s3.public_endpoint: must have no path and no query and no fragment",
				`ops_listen: "127.0.0.1:9090/metrics" is not host:port`,
				"public_url: must have no path and no query",
				"cors_origins[5]: must be scheme://host, with a port where it is not the scheme's own, or *",
				"cors_origins[6]: must be scheme://host, with a port where it is not the scheme's own, or *",
				"cors_origins[7]: must be scheme://host, with a port where it is not the scheme's own, or *",
				"cors_origins[8]: must be scheme://host, with a port where it is not the scheme's own, or *",
				"moderation.url: must have no fragment",
				"channels[0].base_url: must have no query",
				"channels[1].base_url: must have no fragment",
			},
		},
		"addresses of the object store": {
			text: "s3: {endpoint: 'https://u:p@s3.example.com', public_endpoint: 'https://media.example.com:0'}\n",
			want: []string{"s3.endpoint: the URL carries user information", "s3.public_endpoint: the port is not between 1 and 65535"},
		},
		"a password with a number sign": {
			args: []string{"-database-url", "postgres://gate:pass#word@db/gate"},
			want: []string{"database_url: must have no fragment: a # in a password is %23"},
		},
		"a database's URL with a port that is none": {
			args: []string{"-database-url", "postgres://gate:word@db:99999/gate"},
			want: []string{"database_url: invalid port (strconv.ParseUint: parsing \"99999\": value out of range)"},
		},
		"a database's URL with another setting of TLS than there are": {
			args: []string{"-database-url", "postgres://gate:word@db/gate?sslmode=bogus"},
			want: []string{"database_url: failed to configure TLS (sslmode is invalid)"},
		},
		"a database's URL that names a file that is not there": {
			args: []string{"-database-url", "postgres://gate@db/gate?sslmode=verify-full&sslrootcert=/no/such/file"},
			want: []string{"database_url: failed to configure TLS (unable to read CA file: open /no/such/file: no such file or directory)"},
		},
		"a password with a slash": {
			args: []string{"-database-url", "postgres://gate:pass/word@db/gate"},
			want: []string{"database_url: is no URL: in a name or a password / is %2F, : is %3A, @ is %40, % is %25"},
		},
		"accounts and former names of channels": { // D11
			text: "channels:\n" +
				"  - {name: a, provider: dashscope, credentials: {api_key: k}, account: ' ', former: [b, a, old]}\n" +
				"  - {name: b, provider: dashscope, credentials: {api_key: k}, account: 'acme ', former: ['', old, older, older]}\n" +
				"  - {name: c, provider: dashscope, credentials: {api_key: k}, account: acme}\n" +
				"  - {name: d, provider: dashscope, credentials: {api_key: l}, account: acme, former: [oldest]}\n",
			want: []string{
				"channels[0].account: must not be blank, nor begin or end with a space",
				"channels[1].account: must not be blank, nor begin or end with a space",
				`channels[0].former[0]: "b" is the name of a channel`, `channels[0].former[1]: "a" is the name of a channel`,
				"channels[1].former[0]: must not be empty",
				`channels[1].former[1]: "old" is given twice`, `channels[1].former[3]: "older" is given twice`,
			},
		},
		"unknown names in lists of variables": {
			env:  []string{"MEDIAGATE_GROUPS={default: {x: 1}}"},
			want: []string{"groups.default.x: no such setting (MEDIAGATE_GROUPS)"},
		},
		"several documents": {
			text: "---\na: 1\n", want: []string{"config: FILE: holds several documents, must be one"},
		},
		"no mapping": {bare: true, text: "- a\n", want: []string{"config: FILE: must be a mapping, name: value"}},
		"no YAML":    {bare: true, text: "a: [", want: []string{"config: FILE: [1:4] sequence end token ']' not found"}},
		"twice":      {text: "s3: {bucket: a, bucket: b}", want: []string{`config: FILE: [5:17] mapping key "bucket" already defined at [5:6]`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src := app.Sources{Base: app.Defaults(), Env: test.env, Args: test.args}
			if text := test.text; !test.bare || text != "" {
				if !test.bare {
					text = complete + text
				}
				src.File = file(t, text)
			}
			_, err := app.Load(src)
			got := lines(err)
			for i := range got {
				if src.File == "" {
					break
				}
				got[i] = strings.ReplaceAll(got[i], src.File+": ", "FILE: ")
			}
			slices.Sort(test.want)
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// folder is a directory with these files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// TestLoadReadsTheCatalog checks that errors in model files are errors of the settings.
func TestLoadReadsTheCatalog(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a.yaml": "enabled: false\n", "b.yaml": "id: omega\nschemes: 1\n", "c.txt": "{"})
	_, err := load(t, complete+"currency: ''\n", []string{"MEDIAGATE_CATALOG_DIR=" + dir}, nil)
	want := []string{
		"currency: must not be empty", "catalog_dir: a.yaml: id is missing", `catalog_dir: b.yaml: [2:1] unknown field "schemes"`,
	}
	if diff := cmp.Diff(want, lines(err)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestLoadChecksTheCatalog checks that model files are compared with the adapters.
func TestLoadChecksTheCatalog(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"a.yaml": "id: theta-image-turbo\noperations:\n  - endpoint: /v1/images/generations\n    schema: {properties: {prompt: {type: string}, resolution: {type: string, enum: [1K, 2K], default: 1K}, prompt_extend: {type: boolean, default: false}, seed: {type: integer}}}\n",
		"b.yaml": "id: alpha-v3\noperations:\n  - endpoint: /v1/videos/generations\n    routes: [{provider: klinge, upstream: x, operation: video}, {provider: kling, upstream: x, operation: film}]\n",
		"c.yaml": "id: alpha-video-o1\noperations:\n  - endpoint: /v1/videos/generations\n    routes: [{provider: dashscope, upstream: x, operation: image}]\n",
	})
	_, err := load(t, complete, []string{"MEDIAGATE_CATALOG_DIR=" + dir}, nil)
	got := lines(err)
	want := []string{
		`catalog_dir: b.yaml: operations[/v1/videos/generations].routes[0].provider: "klinge" is unknown; known: ` + strings.Join(all.Builtin().Names(), ", "),
		`catalog_dir: b.yaml: operations[/v1/videos/generations].routes[1].operation: kling has no "film"; it has: base_video, omni, omni_frames, video`,
		`catalog_dir: c.yaml: operations[/v1/videos/generations].routes[0].operation: image of dashscope makes image, the model is video`,
		`catalog_dir: c.yaml: operations[/v1/videos/generations].schema.properties.mode: no route takes it`,
		`catalog_dir: a.yaml: operations[/v1/images/generations].schema.properties.seed: no route takes it`,
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("no %q in %q", line, got)
		}
	}
}

// TestLoadChecksWhatCanBeRead checks that an unreadable file does not hide errors of others, nor
// one error of a model another.
func TestLoadChecksWhatCanBeRead(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"a.yaml": "id: [\n",
		"b.yaml": "id: alpha-v3\noperations:\n  - endpoint: /v1/videos/generations\n    routes: [{provider: klinge, upstream: x, operation: video}]\n",
		"c.yaml": "id: delta-02\noperations:\n  - endpoint: /v1/videos/generations\n    schema: {type: object}\n    routes: [{provider: minimax, upstream: x, operation: film}]\n",
		"d.yaml": "id: delta-2.3\noperations:\n  - endpoint: /v1/videos/generations\n    routes: []\n    on_unknown: hope\n",
	})
	_, err := load(t, complete, []string{"MEDIAGATE_CATALOG_DIR=" + dir}, nil)
	want := []string{
		"catalog_dir: a.yaml: [1:5] sequence end token ']' not found",
		"catalog_dir: c.yaml: operations[/v1/videos/generations]: schema: type is the same for every model, leave it out",
		"catalog_dir: d.yaml: operations[/v1/videos/generations]: on_unknown must be fail or park",
		"catalog_dir: d.yaml: operations[/v1/videos/generations]: routes: there are none",
		`catalog_dir: b.yaml: operations[/v1/videos/generations].routes[0].provider: "klinge" is unknown; known: ` + strings.Join(all.Builtin().Names(), ", "),
		`catalog_dir: c.yaml: operations[/v1/videos/generations].routes[0].operation: minimax has no "film"; it has: base_video, video, video_v2`,
	}
	if diff := cmp.Diff(want, lines(err)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestLoadChecksPassthrough checks that the passthrough models of channels are compared with the
// adapters and with each other.
func TestLoadChecksPassthrough(t *testing.T) {
	t.Parallel()
	channel := func(passthrough string) string {
		return complete + "\nchannels:\n  - {name: k, provider: kling, credentials: {api_key: k}, passthrough: {" + passthrough + "}}\n" +
			"  - {name: m, provider: minimax, credentials: {api_key: k}, passthrough: {film: {upstream: film-1, operation: video_generation, price: \"0.25\"}}}\n"
	}
	for passthrough, want := range map[string][]string{
		`film: {upstream: film-2, operation: video_generation, price: "0.25"}`: nil,
		`other: {upstream: o, operation: video_generation}`:                    nil,
		`still: {upstream: s, operation: image_generation}`:                    {"channels[0].passthrough.still.operation: kling has no image_generation for models of no catalog"},
		`film: {upstream: film-1, operation: video_generation, price: "0.3"}`:  {`channels[1].passthrough.film.price: is "0.3" on another channel`},
		`other: {upstream: "", operation: film}`: {
			"channels[0].passthrough.other.upstream: must not be empty", "channels[0].passthrough.other.operation: must be video_generation or image_generation",
		},
		`other: {upstream: o, operation: video_generation, price: "-1"}`: {`channels[0].passthrough.other.price: "-1" is no price: write a decimal such as "0.25"`},
		`"o*": {upstream: o, operation: video_generation}`:               {`channels[0].passthrough."o*": is not a model id: it must have no blanks around it, and no *`},
		`alpha-v3: {upstream: o, operation: video_generation}`:           {"channels: channel k: passthrough.alpha-v3: alpha-v3 is a model of the catalog, of alpha-v3.yaml"},
		`other: {upstream: o, operation: video_generation, cost: "1"}`:   {"channels[0].passthrough.other.cost: no such setting"},
	} {
		_, err := load(t, channel(passthrough), nil, nil)
		got := lines(err)
		for _, line := range want {
			if !slices.Contains(got, line) {
				t.Errorf("%s: no %q in %q", passthrough, line, got)
			}
		}
		if want == nil && err != nil {
			t.Errorf("%s: %v", passthrough, err)
		}
	}
}

func TestLoadRefusesWrongUse(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"unknown flag": {"-databse-url", "x"},
		"no value":     {"-database-url"},
		"argument":     {"-database-url", "x", "extra"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, "foo: 1", nil, args)
			if _, ok := errors.AsType[*app.UsageError](err); !ok {
				t.Errorf("%v, want a UsageError", err)
			}
		})
	}
	if _, err := load(t, "foo: 1", nil, []string{"extra", "-h"}); errors.Is(err, flag.ErrHelp) {
		t.Error("what follows an argument is read as a flag")
	}
	if _, err := load(t, "foo: 1", nil, []string{"-h"}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v, want flag.ErrHelp", err)
	}
}

// TestLoadKeepsTexts checks that texts keep their spelling, whatever type YAML gives them.
func TestLoadKeepsTexts(t *testing.T) {
	t.Parallel()
	for _, written := range []string{
		"0123456", "12345678901234567890123456789012", "00000000000000000000000000000000", "1_000", "0x1F", "1e31", "1.20",
		"+7", "18446744073709551616", "9223372036854775808", ".5", "12:30", `"0123"`, "'007'", "!!str 0123", "&x 0123",
	} {
		t.Run(written, func(t *testing.T) {
			t.Parallel()
			_, plain, found := strings.Cut(written, " ")
			if !found {
				plain = strings.Trim(written, `"'`)
			}
			c, err := load(t, complete+"s3: {access_key_id: x, secret_access_key: "+written+"}\n"+
				"channels: [{name: a, provider: dashscope, credentials: {api_key: "+written+"}, callback_secret: "+written+"}]\n",
				[]string{"MEDIAGATE_CURRENCY=" + plain}, nil)
			must(t, err)
			want := []string{plain, plain, plain, plain}
			got := []string{c.S3.SecretAccessKey, c.Channels[0].Credentials["api_key"], c.Channels[0].CallbackSecret, c.Currency}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLoadAliases checks that a file may use YAML's anchors and merges.
func TestLoadAliases(t *testing.T) {
	t.Parallel()
	c, err := load(t, complete+"channels:\n"+
		"  - &first {name: a, provider: dashscope, credentials: {api_key: k}, weight: 3, priority: 2, poll_interval: {min: 3s, max: 9s}}\n"+
		"  - {<<: *first, name: b, weight: 5, poll_interval: {min: 4s}}\n"+
		"  - {name: c, weight: \"5\", poll_interval: {min: 4s}, <<: *first}\n", nil, nil)
	must(t, err)
	for i, name := range []string{"b", "c"} {
		c := c.Channels[i+1]
		if c.Name != name || c.Weight != 5 || c.Priority != 2 || c.Credentials["api_key"] != "k" || c.PollInterval.Max != 15*time.Second {
			t.Errorf("%+v", c)
		}
	}
	_, err = load(t, complete+"currency: *nothing\n", nil, nil)
	if err == nil || !strings.Contains(err.Error(), "alias") {
		t.Errorf("an alias of nothing: %v", err)
	}
}

// TestListenAddresses checks that invalid listen addresses are refused before the process
// listens.
func TestListenAddresses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ api, admin, want string }{
		"apart":                    {":8080", "127.0.0.1:8081", ""},
		"one port of the system":   {"127.0.0.1:0", "127.0.0.1:0", ""},
		"no port of the admin API": {":8080", "", ""},
		"the same":                 {":8080", ":8080", "admin_listen: is the address of api_listen: take another, or leave it out"},
		"a port too far":           {":8080", "127.0.0.1:80810", `admin_listen: "127.0.0.1:80810" has no port from 0 to 65535`},
		"a port below all":         {":-1", "", `api_listen: ":-1" has no port from 0 to 65535`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, complete+"api_listen: "+strconv.Quote(test.api)+"\nadmin_listen: "+strconv.Quote(test.admin)+"\n", nil, nil)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("it says %q, want %q", got, test.want)
			}
		})
	}
}

func TestValidateNamesEveryProblem(t *testing.T) {
	t.Parallel()
	c := app.Defaults()
	c.AdminKey = "0123456789abcdef0123456789abcde" // 31 characters
	c.EncryptionKeys = []string{"short"}
	c.S3.AccessKeyID = "alone"
	c.PublicURL = "ftp://example.com"
	c.AdminListen = "9999"
	c.TaskTimeout = 0
	c.DatabasePool = app.DatabasePool{Size: 1}
	c.DatabasePooler = "session"
	c.APIConnections, c.IdleTimeout = app.APIConnections{}, 0
	c.Outbound.Allow = []string{"10.0.0.1"}
	c.Outbound.Proxy = "socks5://gate:hunter2@proxy:1080"
	c.Moderation.Mode = "guess"
	c.Groups = map[string]app.Group{"gold": {PriceFactor: "cheap", Capacity: -1}}
	c.AccountDefaults = app.AccountDefaults{Rate: new(-1), InFlight: new(2_000_000_000), Unpaid: new("-1"), UploadsPerDay: new(app.ByteSize(-1))}
	c.Channels = []app.Channel{{Name: "a", Provider: "nobody"}, {Name: "a", Provider: "kling", Proxy: "http://gate:hunter2@proxy:3128/path"}}
	err := c.Validate()
	if err == nil {
		t.Fatal("valid")
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a secret is shown:\n%s", err)
	}
	for _, path := range []string{
		"database_url:", "database_pool.size:", "database_pool.max_age:", "database_pooler:", "admin_listen:", "admin_key:", "encryption_keys[0]:", "s3.secret_access_key:", "public_url:", "task_timeout:",
		"api_connections.total:", "idle_timeout:", "outbound.allow[0]:", "outbound.proxy:", "channels[1].proxy:", "moderation.mode:", "groups.default:", "groups.gold.price_factor:", "groups.gold.capacity:",
		"account_defaults.rate:", "account_defaults.in_flight:", "account_defaults.unpaid:", "account_defaults.uploads_per_day:",
		"channels[0]", `"nobody"`, "channels[1].name:", "channels[1].poll_interval:", "channels[1].requests_per_second:",
	} {
		if !strings.Contains(err.Error(), path) {
			t.Errorf("%s is not named in:\n%s", path, err)
		}
	}
	c.AdminKey += "f"
	if strings.Contains(c.Validate().Error(), "admin_key") {
		t.Error("32 characters are refused")
	}
}

// TestAdminKeyFile checks that the higher layer of settings decides the source of the admin key.
func TestAdminKeyFile(t *testing.T) {
	t.Parallel()
	const base, told, kept = "base-0123456789-0123456789-0123456789", "told-0123456789-0123456789-0123456789", "file-0123456789-0123456789-0123456789"
	name := filepath.Join(t.TempDir(), "admin")
	must(t, os.WriteFile(name, []byte(kept+"\n"), 0o600))
	inFile, fileInFile := "admin_key: "+told+"\n", "admin_key_file: "+name+"\n"
	inEnv, fileInEnv := "MEDIAGATE_ADMIN_KEY="+told, "MEDIAGATE_ADMIN_KEY_FILE="+name
	const both = "admin_key_file: excludes admin_key: set one of them"
	for name, test := range map[string]struct {
		base     string
		text     string
		env      []string
		args     []string
		want     string
		problems []string
	}{
		"base":                          {base: base, want: base},
		"file over base":                {base: base, text: fileInFile, want: kept},
		"variable over base":            {base: base, env: []string{fileInEnv}, want: kept},
		"variable over file":            {text: inFile, env: []string{fileInEnv}, want: kept},
		"key of a variable over file":   {text: fileInFile, env: []string{inEnv}, want: told},
		"flag over variable":            {env: []string{inEnv}, args: []string{"-admin-key-file", name}, want: kept},
		"key of a flag over variable":   {env: []string{fileInEnv}, args: []string{"-admin-key", told}, want: told},
		"empty variables say nothing":   {text: fileInFile, env: []string{"MEDIAGATE_ADMIN_KEY="}, want: kept},
		"an empty file is taken back":   {base: base, text: fileInFile, env: []string{"MEDIAGATE_ADMIN_KEY_FILE="}, want: base},
		"both in the file":              {text: inFile + fileInFile, want: told, problems: []string{both}},
		"both in variables":             {env: []string{inEnv, fileInEnv}, want: told, problems: []string{both + " (MEDIAGATE_ADMIN_KEY_FILE)"}},
		"both in flags":                 {args: []string{"-admin-key", told, "-admin-key-file", name}, want: told, problems: []string{both + " (-admin-key-file)"}},
		"a file that is not there":      {base: base, text: "admin_key_file: /does/not/exist\n", problems: []string{"admin_key_file: open /does/not/exist: no such file or directory"}},
		"a file that is not in force":   {text: "admin_key_file: /does/not/exist\n", env: []string{inEnv}, want: told},
		"a key that is too short there": {env: []string{"MEDIAGATE_ADMIN_KEY_FILE=/dev/null"}, problems: []string{"admin_key: must have at least 32 characters"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src := app.Sources{Base: app.Defaults(), Env: test.env, Args: test.args}
			src.Base.AdminKey = test.base
			src.Base.DatabaseURL = "postgres://db/gate"
			src.Base.EncryptionKeys = []string{"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}
			src.File = file(t, test.text)
			c, err := app.Load(src)
			if diff := cmp.Diff(test.problems, lines(err)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if c.AdminKey != test.want {
				t.Errorf("key %q, want %q", c.AdminKey, test.want)
			}
		})
	}
}

// TestProblemsShowNoSecrets checks that errors of settings, which are logged, hold no secrets.
func TestProblemsShowNoSecrets(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"postgres://gate:hunter2/hunter2@db/gate", "postgres://gate:hunter2%zz@db/gate", "postgres://gate:hunter2@db:99999/gate",
		"postgres://gate:`%60`: hunter2@db/gate", "postgres://gate@db/gate?sslmode=bogus&password=hunter2", "postgres://gate:hunter2@db/gate?x=`: y&sslmode=bogus",
	} {
		if _, err := load(t, "", nil, []string{"-database-url", url}); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", url, err)
		}
	}
	_, err := load(t, "admin_key: hunter2\nencryption_keys: [hunter2]\ndatabase_url: hunter2\n"+
		"channels: [{name: a, provider: kling, base_url: 'https://me:hunter2@x', credentials: {a: hunter2, access_key: hunter2 hunter2}}]\n",
		[]string{"MEDIAGATE_CHANNELS=[{credentials: {a: hunter2}"}, []string{"-groups", "{hunter2: [", "-s3-endpoint", "hunter2"})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}

// TestAccountDefaults checks that null is a value of a limit and means no limit. A layer that
// does not name a limit keeps it.
func TestAccountDefaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		env  []string
		args []string
		want string
		err  string
	}{
		"nothing said": {want: "{rate: 1200, in_flight: 1000, unpaid: \"25\", uploads_per_day: 20GiB}"},
		"some of them": {text: "account_defaults: {rate: 5, unpaid: null}", want: "{rate: 5, in_flight: 1000, unpaid: null, uploads_per_day: 20GiB}"},
		"by layers": {
			text: "account_defaults: {rate: null, in_flight: 0, uploads_per_day: 1MiB}", env: []string{"MEDIAGATE_ACCOUNT_DEFAULTS_RATE=7", "MEDIAGATE_ACCOUNT_DEFAULTS_UPLOADS_PER_DAY=null"},
			args: []string{"-account-defaults-unpaid", "0.5"}, want: "{rate: 7, in_flight: 0, unpaid: \"0.5\", uploads_per_day: null}",
		},
		"a fraction":     {text: "account_defaults: {rate: 1.5}", err: "account_defaults.rate: must be a whole number"},
		"negative":       {text: "account_defaults: {in_flight: -1}", err: "account_defaults.in_flight: must be between 0 and"},
		"no decimal":     {text: "account_defaults: {unpaid: much}", err: "account_defaults.unpaid: must be a decimal"},
		"no size":        {text: "account_defaults: {uploads_per_day: 1.5GiB}", err: "account_defaults.uploads_per_day: must be a size"},
		"an unknown one": {text: "account_defaults: {speed: 1}", err: "account_defaults.speed: no such setting"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := load(t, test.text, test.env, test.args)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("%v, want %q", err, test.err)
				}
				return
			}
			text, err := c.Print()
			must(t, err)
			for line := range strings.SplitSeq(strings.Trim(test.want, "{}"), ", ") {
				if !strings.Contains(text, "\n  "+line+"\n") {
					t.Errorf("%s is not in\n%s", line, text)
				}
			}
		})
	}
}
