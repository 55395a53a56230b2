package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/cmd/mediagate/app"
)

const whole = `
database_url: postgres://gate:hunter2@db.example.com/gate
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
groups:
  default: {price_factor: "1", models: ["*"], capacity: 0}
  gold: {price_factor: 0.8, models: ["alpha-*"]}
`

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "mediagate.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func load(t *testing.T, text string, env, args []string) (app.Config, error) {
	t.Helper()
	src := app.Sources{Base: app.Defaults(), Env: env, Args: args}
	if text != "" {
		src.File = file(t, text)
	}
	c, _, err := app.Load(src)
	return c, err
}

func TestLoadReadsEverySetting(t *testing.T) {
	t.Parallel()
	c, err := load(t, whole, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
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
	}
	if diff := cmp.Diff([]app.Channel{want}, c.Channels); diff != "" {
		t.Error(diff)
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
		"MEDIAGATE_FAILPOINT=mirrored", "MEDIAGATE_TEST_POSTGRES=x", "OTHER=1",
	}
	c, err := load(t, whole, env, []string{"-s3-bucket", "from-flag", "--log-level=debug"})
	if err != nil {
		t.Fatal(err)
	}
	if c.APIListen != ":8082" || c.S3.Bucket != "from-flag" || c.LogLevel != "debug" || c.OpsListen != ":9091" ||
		c.S3.PathStyle || c.TrustedProxies != 2 || c.TaskTimeout != time.Hour {
		t.Errorf("layers are not obeyed: %+v", c)
	}
	if diff := cmp.Diff([]string{"127.0.0.0/8", "10.0.0.0/8"}, c.Outbound.Allow); diff != "" {
		t.Error(diff)
	}
	if len(c.Channels) != 1 || c.Channels[0].Name != "x" {
		t.Errorf("channels are not replaced as a whole: %+v", c.Channels)
	}
}

func TestLoadNamesEveryProblem(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		env  []string
		args []string
		want []string
	}{
		"unknown keys": {
			text: "databse_url: x\ns3: {bukket: y}\n", want: []string{"databse_url", "bukket"},
		},
		"wrong types": {
			text: "trusted_proxies: many\nshutdown_grace: soon\nretention: {tasks: 5}\nown_domains: 7\n",
			want: []string{"trusted_proxies", "shutdown_grace", "retention.tasks", "own_domains"},
		},
		"unknown variable": {env: []string{"MEDIAGATE_DATABSE_URL=x"}, want: []string{"MEDIAGATE_DATABSE_URL"}},
		"unknown flag":     {args: []string{"-databse-url", "x"}, want: []string{"databse-url"}},
		"no YAML":          {text: "a: [", want: []string{"mediagate.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, test.text, test.env, test.args)
			if err == nil {
				t.Fatal("loaded")
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not named in:\n%s", part, err)
				}
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
	c.TaskTimeout = 0
	c.Outbound.Allow = []string{"10.0.0.1"}
	c.Moderation.Mode = "words"
	c.Groups = map[string]app.Group{"gold": {PriceFactor: "cheap", Capacity: 1}}
	c.Channels = []app.Channel{{Name: "a", Provider: "nobody"}, {Name: "a", Provider: "kling"}}
	err := c.Validate()
	if err == nil {
		t.Fatal("valid")
	}
	for _, path := range []string{
		"database_url:", "admin_key:", "encryption_keys[0]:", "s3.secret_access_key:", "public_url:", "task_timeout:",
		"outbound.allow[0]:", "moderation.mode:", "groups.default:", "groups.gold.price_factor:", "groups.gold.capacity:",
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

func TestAdminKeyFile(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "admin")
	if err := os.WriteFile(name, []byte("0123456789abcdef0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := load(t, "admin_key_file: "+name+"\n", nil, nil)
	if err != nil || c.AdminKey != "0123456789abcdef0123456789abcdef" {
		t.Errorf("%q, %v", c.AdminKey, err)
	}
}
